// The interop service on rsocket-js 0.0.27: `node server.js TRANSPORT [--lease]` prints `LISTENING port` and serves
// until it is killed.
// interop/README.md describes the procedures.
'use strict';

const net = require('net');
const {BufferEncoders, Lease, Leases, RSocketServer, MESSAGE_RSOCKET_ROUTING, decodeCompositeMetadata, decodeRoutes} = require('rsocket-core');
const {Flowable, Single} = require('rsocket-flowable');
const RSocketTCPServer = require('rsocket-tcp-server').default;
const RSocketWebSocketServer = require('rsocket-websocket-server').default;
const WebSocket = require('ws');

const WINDOW = 8; // items that a channel requests at a time
const LEASE_REQUESTS = 4;
const LEASE_MS = 1000;

function routeOf(payload) {
  for (const entry of decodeCompositeMetadata(payload.metadata || Buffer.alloc(0))) {
    if (entry.mimeType === MESSAGE_RSOCKET_ROUTING.string) return decodeRoutes(entry.content).next().value;
  }
  throw new Error('the request has no route');
}

function find(table, payload) {
  const route = routeOf(payload);
  if (!Object.hasOwn(table, route)) throw new Error(`no procedure ${route}`);
  return table[route];
}

const text = (value) => Buffer.from(String(value));

// A stream of `total` payloads, created one by one as they are requested.
function generated(total, make) {
  return new Flowable((subscriber) => {
    let at = 0;
    subscriber.onSubscribe({
      cancel: () => { at = total + 1; },
      request: (n) => {
        for (; n > 0 && at < total; n--) subscriber.onNext({data: make(at++)});
        if (at === total) {
          at += 1;
          subscriber.onComplete();
        }
      },
    });
  });
}

// The outbound half of a channel: pushed items wait until they are requested.
class Outgoing {
  constructor() {
    this.items = [];
    this.credit = 0;
    this.over = false;
  }

  push(payload) {
    this.items.push(payload);
    this.flush();
  }

  complete() {
    this.over = true;
    this.flush();
  }

  request(n) {
    this.credit += n;
    this.flush();
  }

  flush() {
    for (; this.credit > 0 && this.items.length > 0; this.credit--) this.subscriber.onNext(this.items.shift());
    if (this.over && this.items.length === 0) this.subscriber.onComplete();
  }
}

const calls = {
  echo: (payload) => Single.of(payload),
  // The library's responder has one error code for everything: 0x201.
  fail: () => Single.error(new Error('boom')),
  slow: (payload) => new Single((subscriber) => {
    const timer = setTimeout(() => subscriber.onComplete({data: payload.data}), Number(payload.data));
    subscriber.onSubscribe(() => clearTimeout(timer));
  }),
};

const streams = {
  count: (payload) => generated(Number(payload.data), text),
  blob: (payload) => {
    const [total, size] = payload.data.toString().split(',').map(Number);
    return generated(total, () => Buffer.alloc(size));
  },
};

const channels = {
  sum: (outgoing) => {
    let total = 0;
    return {
      next: (number) => { total += number; },
      end: () => { outgoing.push({data: text(total)}); outgoing.complete(); },
    };
  },
  double: (outgoing) => ({
    next: (number) => outgoing.push({data: text(2 * number)}),
    end: () => outgoing.complete(),
  }),
};

const fires = {
  log: (payload) => console.log(`LOG ${payload.data.length}`),
};

// The route is in the first payload, which the library delivers like the others.
function channel(payloads) {
  const outgoing = new Outgoing();
  let incoming, handler, asked = WINDOW;
  const receive = (payload) => {
    handler = handler || find(channels, payload)(outgoing);
    if (payload.data && payload.data.length > 0) handler.next(Number(payload.data));
    if (--asked === 0) incoming.request(asked = WINDOW);
  };
  return new Flowable((subscriber) => {
    outgoing.subscriber = subscriber;
    subscriber.onSubscribe({
      request: (n) => outgoing.request(n),
      cancel: () => incoming.cancel(),
    });
    payloads.subscribe({
      onSubscribe: (subscription) => { incoming = subscription; subscription.request(WINDOW); },
      onNext: receive,
      onComplete: () => handler.end(),
      onError: (error) => subscriber.onError(error),
    });
  });
}

function telling(server) {
  server.on('listening', () => console.log(`LISTENING ${server.address().port}`));
  return server;
}

const place = {host: '127.0.0.1', port: 0};
const transports = {
  tcp: () => {
    const serverFactory = (onConnection) => telling(net.createServer(onConnection));
    return new RSocketTCPServer({...place, serverFactory}, BufferEncoders);
  },
  ws: () => new RSocketWebSocketServer(place, BufferEncoders, (options) => telling(new WebSocket.Server(options))),
};

// Grants a lease now, and another one whenever it expires.
const leases = () => new Flowable((subscriber) => {
  let timer;
  subscriber.onSubscribe({
    cancel: () => clearInterval(timer),
    request: () => {
      const grant = () => subscriber.onNext(new Lease(LEASE_MS, LEASE_REQUESTS));
      timer = setInterval(grant, LEASE_MS);
      grant();
    },
  });
});

console.error = () => {}; // the library writes refused requests to the console
new RSocketServer({
  transport: transports[process.argv[2]](),
  leases: process.argv[3] === '--lease' ? () => new Leases().sender(leases) : undefined,
  getRequestHandler: () => ({
    requestResponse: (payload) => find(calls, payload)(payload),
    requestStream: (payload) => find(streams, payload)(payload),
    requestChannel: channel,
    fireAndForget: (payload) => find(fires, payload)(payload),
  }),
}).start();
