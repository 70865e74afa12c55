// The interop service on rsocket-js 1.0.0-alpha.3: `node server.js TRANSPORT` prints `LISTENING port` and serves until
// it is killed.
// interop/README.md describes the procedures.
'use strict';

const net = require('net');
const {RSocketError, RSocketServer} = require('rsocket-core');
const {TcpServerTransport} = require('rsocket-tcp-server');
const {WebsocketServerTransport} = require('rsocket-websocket-server');
const WebSocket = require('ws');
const {WellKnownMimeType, decodeCompositeMetadata, decodeRoutes} = require('rsocket-composite-metadata');

const FRAGMENT_BYTES = 64 * 1024;
const WINDOW = 8; // items that a channel requests at a time

function routeOf(payload) {
  for (const entry of decodeCompositeMetadata(payload.metadata || Buffer.alloc(0))) {
    if (entry.mimeType === WellKnownMimeType.MESSAGE_RSOCKET_ROUTING.string) return decodeRoutes(entry.content).next().value;
  }
  throw new Error('the request has no route');
}

function find(table, payload) {
  const route = routeOf(payload);
  if (!Object.hasOwn(table, route)) throw new Error(`no procedure ${route}`);
  return table[route];
}

const text = (value) => Buffer.from(String(value));
const NOTHING = {cancel: () => {}, request: () => {}, onExtension: () => {}};

// Sends `total` payloads, created one by one as they are requested.
function generated(total, make, initial, stream) {
  let at = 0;
  let over = false;
  const request = (n) => {
    for (; n > 0 && at < total && !over; n--) stream.onNext({data: make(at++)}, at === total);
  };
  request(initial);
  if (total === 0) stream.onComplete();
  return {...NOTHING, request, cancel: () => { over = true; }};
}

const calls = {
  echo: (payload, stream) => {
    stream.onNext({data: payload.data, metadata: payload.metadata}, true);
    return NOTHING;
  },
  // The library checks `instanceof RSocketError`, which its own compiled constructor does not satisfy.
  fail: () => { throw Object.setPrototypeOf(new RSocketError(0x301, 'boom'), RSocketError.prototype); },
  slow: (payload, stream) => {
    const timer = setTimeout(() => stream.onNext({data: payload.data}, true), Number(payload.data));
    return {...NOTHING, cancel: () => clearTimeout(timer)};
  },
};

const streams = {
  count: (payload, initial, stream) => generated(Number(payload.data), text, initial, stream),
  blob: (payload, initial, stream) => {
    const [total, size] = payload.data.toString().split(',').map(Number);
    return generated(total, () => Buffer.alloc(size), initial, stream);
  },
};

const channels = {
  sum: (outgoing) => {
    let total = 0;
    return {next: (number) => { total += number; }, end: () => { outgoing.push(total); outgoing.complete(); }};
  },
  double: (outgoing) => ({next: (number) => outgoing.push(2 * number), end: () => outgoing.complete()}),
};

// The outbound half of a channel: pushed items wait until they are requested.
class Outgoing {
  constructor(credit, stream) {
    Object.assign(this, {credit, stream, items: [], over: false});
  }

  push(number) {
    this.items.push({data: text(number)});
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
    for (; this.credit > 0 && this.items.length > 0; this.credit--) this.stream.onNext(this.items.shift(), false);
    if (this.over && this.items.length === 0) this.stream.onComplete();
  }
}

function channel(first, initial, isComplete, stream) {
  const outgoing = new Outgoing(initial, stream);
  const handler = find(channels, first)(outgoing);
  let asked = WINDOW + 1; // the first payload arrives without a request
  const receive = (payload, last) => {
    if (payload.data && payload.data.length > 0) handler.next(Number(payload.data));
    if (last) handler.end();
    else if (--asked === 0) stream.request(asked = WINDOW);
  };
  const receiver = {
    ...NOTHING,
    onNext: receive,
    onComplete: () => handler.end(),
    onError: () => {},
    request: (n) => outgoing.request(n),
    cancel: () => {},
  };
  if (!isComplete) stream.request(WINDOW);
  receive(first, isComplete);
  return receiver;
}

const fires = {
  log: (payload) => console.log(`LOG ${payload.data.length}`),
};

function fire(payload) {
  find(fires, payload)(payload);
  return NOTHING;
}

function telling(server) {
  server.on('listening', () => console.log(`LISTENING ${server.address().port}`));
  return server;
}

const place = {host: '127.0.0.1', port: 0};
const transports = {
  tcp: () => new TcpServerTransport({listenOptions: place, socketCreator: (options) => telling(new net.Server(options))}),
  ws: () => new WebsocketServerTransport({...place, wsCreator: (options) => telling(new WebSocket.Server(options))}),
};

console.warn = () => {}; // the library writes closed streams to the console
new RSocketServer({
  transport: transports[process.argv[2]](),
  resume: {sessionTimeout: 30000},
  fragmentation: {maxOutboundFragmentSize: FRAGMENT_BYTES},
  acceptor: {
    accept: async () => ({
      requestResponse: (payload, stream) => find(calls, payload)(payload, stream),
      requestStream: (payload, initial, stream) => find(streams, payload)(payload, initial, stream),
      requestChannel: channel,
      fireAndForget: fire,
    }),
  },
}).bind();
