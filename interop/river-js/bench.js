// A worker of the benchmarks on River's own implementation: `node bench.js` is a server, `node bench.js ADDRESS` a
// client. It answers the same requests as benchmarks/worker.py.
import http from 'node:http';
import readline from 'node:readline';
import {createClient, createServer, Ok, Procedure, ServiceSchema} from '@replit/river';
import {BinaryCodec} from '@replit/river/codec';
import {WebSocketClientTransport} from '@replit/river/transport/ws/client';
import {WebSocketServerTransport} from '@replit/river/transport/ws/server';
import {Type} from '@sinclair/typebox';
import WebSocket, {WebSocketServer} from 'ws';

const TEXT = 'x'.repeat(128);
const Text = Type.Object({text: Type.String()});
const bench = ServiceSchema.define({
  echo: Procedure.rpc({input: Text, output: Text, handler: async (_, init) => Ok(init)}),
});
const tell = (value) => console.log(JSON.stringify(value));

const serve = () => new Promise((resolve) => {
  const server = http.createServer();
  createServer(new WebSocketServerTransport(new WebSocketServer({server}), 'SERVER', {codec: BinaryCodec}), {bench});
  server.listen(0, '127.0.0.1', () => resolve(`ws://127.0.0.1:${server.address().port}/`));
});

function connect(address) {
  const transport = new WebSocketClientTransport(async () => new WebSocket(address), 'bench', {codec: BinaryCodec});
  const {echo} = createClient(transport, 'SERVER').bench;
  const caller = async (share) => {
    for (let n = 0; n < share; n++) {
      const {ok} = await echo.rpc({text: TEXT});
      if (!ok) throw new Error('a call failed');
    }
  };
  return {
    calls: (count, inFlight) => Promise.all(Array.from({length: inFlight}, () => caller(count / inFlight))),
  };
}

const [address] = process.argv.slice(2);
const client = address && connect(address);
tell(address ? 'connected' : await serve());
for await (const line of readline.createInterface({input: process.stdin})) {
  const begun = performance.now();
  const [method, ...more] = JSON.parse(line);
  if (method) await client[method](...more);
  const {user, system} = process.cpuUsage();
  tell({seconds: (performance.now() - begun) / 1e3, cpu: (user + system) / 1e6});
}
process.exit(0);
