// The interop checks on rsocket-js 1.0.0-alpha.3: `node client.js TRANSPORT HOST PORT CUT_PORT` prints one
// JSON object.
'use strict';

const {randomBytes} = require('crypto');
const {RSocketConnector} = require('rsocket-core');
const {TcpClientTransport} = require('rsocket-tcp-client');
const {WebsocketClientTransport} = require('rsocket-websocket-client');
const WebSocket = require('ws');
const {WellKnownMimeType, encodeCompositeMetadata, encodeRoute} = require('rsocket-composite-metadata');
const {main} = require('../js-common/checks.js');

function encode(route, note) {
  const entries = [[WellKnownMimeType.MESSAGE_RSOCKET_ROUTING, encodeRoute(route)]];
  if (note !== undefined) entries.push([WellKnownMimeType.TEXT_PLAIN, Buffer.from(note)]);
  return encodeCompositeMetadata(entries);
}

// Errors of the library have a code; errors of the connection have none.
const plain = (error) => Object.assign(error, {text: error.message});

const receiver = (collector) => ({
  onNext: (payload, isComplete) => {
    collector.onNext(payload);
    if (isComplete) collector.onComplete();
  },
  onComplete: () => collector.onComplete(),
  onError: (error) => collector.onError(plain(error)),
  onExtension: () => {},
});

// Sends items as the other side requests them.
function outgoing(items) {
  let at = 0;
  let over = items.length === 0;
  const sender = {
    request: (n) => {
      for (; n > 0 && !over; n--) {
        over = at === items.length - 1;
        sender.stream.onNext({data: items[at++]}, over);
      }
    },
    cancel: () => { over = true; },
  };
  return sender;
}

function adapt(rsocket) {
  return {
    call: (payload) => {
      let requester;
      const answer = new Promise((resolve, reject) => {
        requester = rsocket.requestResponse(payload, {
          onNext: resolve,
          onComplete: () => reject(new Error('completed without a payload')),
          onError: (error) => reject(plain(error)),
          onExtension: () => {},
        });
      });
      return {answer, cancel: () => requester.cancel()};
    },
    stream: (payload, collector) => {
      collector.subscription = rsocket.requestStream(payload, collector.window, receiver(collector));
    },
    channel: (payload, items, collector) => {
      const sender = outgoing(items);
      const duplex = {...receiver(collector), ...sender, onError: receiver(collector).onError};
      sender.stream = rsocket.requestChannel(payload, collector.window, items.length === 0, duplex);
      collector.subscription = sender.stream;
    },
    fire: (payload) => rsocket.fireAndForget(payload, {onComplete: () => {}, onError: () => {}}),
    close: () => rsocket.close(),
  };
}

const resuming = {
  tokenGenerator: () => randomBytes(16),
  reconnectFunction: () => new Promise((resolve) => setTimeout(resolve, 50)),
};

const transports = {
  tcp: (host, port) => new TcpClientTransport({connectionOptions: {host, port}}),
  ws: (host, port) => new WebsocketClientTransport({url: `ws://${host}:${port}/`, wsCreator: (url) => new WebSocket(url)}),
};

async function connect({transport, host, port, keepAlive, lifetime, mtu, resume, leases}) {
  if (leases) throw new Error('the library has no leases');
  const rsocket = await new RSocketConnector({
    setup: {
      keepAlive,
      lifetime,
      dataMimeType: 'application/octet-stream',
      metadataMimeType: WellKnownMimeType.MESSAGE_RSOCKET_COMPOSITE_METADATA.string,
    },
    resume: resume ? resuming : undefined,
    fragmentation: {maxOutboundFragmentSize: mtu},
    transport: transports[transport](host, port),
  }).connect();
  return adapt(rsocket);
}

main('js-1.0', connect, encode);
