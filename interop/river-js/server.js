// River's own server, 0.17.1, which speaks v1.1: `node server.js TRANSPORT`. Its codec translates the few things of its
// messages that v2.0 has changed, so that a client of v2.0 receives items and errors as this server sends them.
import http from 'node:http';
import {createServer, Err, Ok, Procedure, ServiceSchema} from '@replit/river';
import {BinaryCodec, NaiveJsonCodec} from '@replit/river/codec';
import {WebSocketServerTransport} from '@replit/river/transport/ws/server';
import {Type} from '@sinclair/typebox';
import {WebSocketServer} from 'ws';

const CODECS = {'river-json': NaiveJsonCodec, 'river-msgpack': BinaryCodec};
// The bit that closes a half in v2.0; in v1.1, one bit closes and cancels.
const [OPEN, V1_CLOSE, V2_CLOSE] = [2, 4, 8];

// Of each client: in v2.0 the server answers with the session id of the client, in v1.1 with its own.
const sessions = new Map();

const translating = (codec) => ({
  toBuffer(message) {
    const {status} = message.payload ?? {};
    if (message.payload?.type === 'HANDSHAKE_RESP' && status.ok) status.sessionId = sessions.get(message.to);
    const closes = message.controlFlags & V1_CLOSE;
    return codec.toBuffer(closes ? {...message, controlFlags: message.controlFlags ^ V1_CLOSE ^ V2_CLOSE} : message);
  },
  fromBuffer(bytes) {
    const message = codec.fromBuffer(bytes);
    if (message?.payload?.type === 'HANDSHAKE_REQ') {
      sessions.set(message.from, message.payload.sessionId);
      message.payload.protocolVersion = 'v1.1';
    }
    // A client of v2.0 closes its half of a subscription when it opens it, which cancels in v1.1.
    if (message?.controlFlags & OPEN) message.controlFlags = OPEN;
    return message;
  },
});

const Number = Type.Object({n: Type.Integer()});
const Boom = Type.Object({code: Type.Literal('BOOM'), message: Type.String(), extras: Number});

const interop = ServiceSchema.define({
  gaps: Procedure.subscription({
    input: Number,
    output: Number,
    errors: Boom,
    async handler(_, init, items) {
      items.push(Ok({n: 0}));
      items.push(Ok({n: 1}));
      items.push(Err({code: 'BOOM', message: 'boom', extras: init}));
      items.push(Ok(init));
      items.end();
    },
  }),
});

const codec = translating(CODECS[process.argv[2]]);
const server = http.createServer();
createServer(new WebSocketServerTransport(new WebSocketServer({server}), 'SERVER', {codec}), {interop});
server.listen(0, '127.0.0.1', () => console.log(`LISTENING ${server.address().port}`));
