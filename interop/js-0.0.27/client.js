// The interop checks on rsocket-js 0.0.27: `node client.js TRANSPORT HOST PORT CUT_PORT` prints one JSON object.
'use strict';

const {randomBytes} = require('crypto');
const {BufferEncoders, Leases, RSocketClient, RSocketResumableTransport, TEXT_PLAIN, MESSAGE_RSOCKET_ROUTING, MESSAGE_RSOCKET_COMPOSITE_METADATA, encodeCompositeMetadata, encodeRoute} = require('rsocket-core');
const {Flowable} = require('rsocket-flowable');
const RSocketTcpClient = require('rsocket-tcp-client').default;
const RSocketWebSocketClient = require('rsocket-websocket-client').default;
const WebSocket = require('ws');
const {main} = require('../js-common/checks.js');

function encode(route, note) {
  const entries = [[MESSAGE_RSOCKET_ROUTING, encodeRoute(route)]];
  if (note !== undefined) entries.push([TEXT_PLAIN, Buffer.from(note)]);
  return encodeCompositeMetadata(entries);
}

// The library stores the code in `source`; errors of the connection have no code.
function plain(error) {
  if (error.source) Object.assign(error, {code: error.source.code, text: error.source.message});
  return error;
}

function outgoing(payloads) {
  return new Flowable((subscriber) => {
    let at = 0;
    subscriber.onSubscribe({
      cancel: () => { at = payloads.length + 1; },
      request: (n) => {
        for (; n > 0 && at < payloads.length; n--) subscriber.onNext(payloads[at++]);
        if (at === payloads.length) {
          at += 1;
          subscriber.onComplete();
        }
      },
    });
  });
}

const receiver = (collector) => ({
  onNext: (payload) => collector.onNext(payload),
  onComplete: () => collector.onComplete(),
  onError: (error) => collector.onError(plain(error)),
  onSubscribe: (subscription) => {
    collector.subscription = subscription;
    subscription.request(collector.window);
  },
});

function adapt(socket) {
  return {
    call: (payload) => {
      let cancel;
      const answer = new Promise((resolve, reject) => socket.requestResponse(payload).subscribe({
        onComplete: resolve,
        onError: (error) => reject(plain(error)),
        onSubscribe: (function_) => { cancel = function_; },
      }));
      return {answer, cancel: () => cancel()};
    },
    stream: (payload, collector) => socket.requestStream(payload).subscribe(receiver(collector)),
    channel: (payload, items, collector) => {
      const payloads = [payload, ...items.map((data) => ({data}))];
      socket.requestChannel(outgoing(payloads)).subscribe(receiver(collector));
    },
    fire: (payload) => socket.fireAndForget(payload),
    close: () => socket.close(),
  };
}

// Reconnects as soon as an established connection is lost.
function resumable(source) {
  const options = {bufferSize: 1024 * 1024, resumeToken: randomBytes(16), sessionDurationSeconds: 30};
  const transport = new RSocketResumableTransport(source, options, BufferEncoders);
  let wasConnected = false;
  transport.connectionStatus().subscribe({
    onSubscribe: (subscription) => subscription.request(Number.MAX_SAFE_INTEGER),
    onNext: (status) => {
      if (status.kind === 'CONNECTED') wasConnected = true;
      else if (status.kind === 'NOT_CONNECTED' && wasConnected) setTimeout(() => transport.connect(), 50);
    },
  });
  return transport;
}

const transports = {
  tcp: (host, port) => new RSocketTcpClient({host, port}, BufferEncoders),
  ws: (host, port) => {
    const wsCreator = (url) => new WebSocket(url);
    return new RSocketWebSocketClient({url: `ws://${host}:${port}/`, wsCreator}, BufferEncoders);
  },
};

const connect = ({transport, host, port, keepAlive, lifetime, resume, leases}) => new Promise((resolve, reject) => {
  const source = () => transports[transport](host, port);
  new RSocketClient({
    setup: {
      keepAlive,
      lifetime,
      dataMimeType: 'application/octet-stream',
      metadataMimeType: MESSAGE_RSOCKET_COMPOSITE_METADATA.string,
    },
    leases: leases ? () => new Leases() : undefined,
    transport: resume ? resumable(source) : source(),
  }).connect().subscribe({onComplete: (socket) => resolve(adapt(socket)), onError: reject});
});

main('js-0.0.27', connect, encode);
