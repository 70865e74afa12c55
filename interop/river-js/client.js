// The interop checks on River's own implementation, 0.17.1, which speaks v1.1:
// `node client.js TRANSPORT HOST PORT CUT_PORT [--slow]` prints one JSON object. interop/README.md describes the checks.
// Each check uses its own connection.
import {createClient} from '@replit/river';
import {BinaryCodec, NaiveJsonCodec} from '@replit/river/codec';
import {WebSocketClientTransport} from '@replit/river/transport/ws/client';
import WebSocket from 'ws';

const CHECK_TIMEOUT_MS = 30000;
const ANSWER_TIMEOUT_MS = 10000;
const CODECS = {'river-json': NaiveJsonCodec, 'river-msgpack': BinaryCodec};

const [transport, host, port, cutPort, slow] = process.argv.slice(2);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const range = (from, to) => Array.from({length: to - from}, (_, n) => from + n);

function expect(found, wanted, what) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what}: ${String(a).slice(0, 80)} instead of ${String(b).slice(0, 80)}`);
}

function within(promise, ms, what) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} within ${ms / 1000} s`)), ms);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

let made = 0;

async function connected(run, options = {}) {
  const id = `river-js-${process.pid}-${made++}`;
  const url = `ws://${host}:${options.port || port}/`;
  const client = new WebSocketClientTransport(async () => new WebSocket(url), id, {codec: CODECS[transport], ...options});
  try {
    await run(createClient(client, 'SERVER').interop, client);
  } finally {
    client.reconnectOnConnectionDrop = false;
    client.close();
  }
}

const answer = (promise) => within(promise, ANSWER_TIMEOUT_MS, 'no answer');

function well(result, what) {
  if (!result.ok) throw new Error(`${what}: ${result.payload.code}: ${result.payload.message}`);
  return result.payload;
}

const alive = async (peer) =>
  expect(well(await answer(peer.echo.rpc({data: 'alive'})), 'echo afterwards'), {data: 'alive'}, 'echo afterwards');

async function refused(result, code, what) {
  const {ok, payload} = await answer(result);
  expect([ok, payload.code], [false, code], what);
  return payload;
}

const echoOf = (data) => () => connected(async (peer) => {
  expect(well(await answer(peer.echo.rpc({data})), 'echo').data, data, 'data');
});

async function all(items, take = Infinity) {
  const found = [];
  for await (const item of items) {
    found.push(well(item, 'item'));
    if (found.length === take) break;
  }
  return found;
}

const checks = {
  echo: echoOf({text: 'héllo \u{1f600}', list: [1, -2.5, null, true], inner: {$x: {}}}),
  'echo-bytes': () => connected(async (peer) => {
    const {data} = well(await answer(peer.echo.rpc({data: new Uint8Array([0, 255, 1])})), 'echo');
    expect([data instanceof Uint8Array, [...data]], [true, [0, 255, 1]], 'bytes');
  }),
  'echo-1MB': echoOf('x'.repeat(1 << 20)),
  count: () => connected(async (peer) => {
    const [items] = await peer.count.subscribe({n: 1000});
    expect((await all(items)).map(({n}) => n), range(0, 1000), 'items');
    await alive(peer);
  }),
  'count-none': () => connected(async (peer) => {
    const [items] = await peer.count.subscribe({n: 0});
    expect(await answer(all(items)), [], 'items');
  }),
  'count-cancel': () => connected(async (peer) => {
    const [items, close] = await peer.count.subscribe({n: 1000000});
    expect((await all(items, 40)).map(({n}) => n), range(0, 40), 'items');
    close();
    await alive(peer);
  }),
  blob: () => connected(async (peer) => {
    const [items] = await peer.blob.subscribe({number: 5, size: 100000});
    expect((await all(items)).map(({text}) => text.length), Array(5).fill(100000), 'sizes');
  }),
  sum: () => connected(async (peer) => {
    const [items, result] = await peer.sum.upload({n: 1});
    for (const n of range(2, 101)) items.push({n});
    items.end();
    expect(well(await answer(result), 'sum'), {n: 5050}, 'sum');
  }),
  'sum-none': () => connected(async (peer) => {
    const [items, result] = await peer.sum.upload({n: 7});
    items.end();
    expect(well(await answer(result), 'sum'), {n: 7}, 'sum');
  }),
  double: () => connected(async (peer) => {
    const [outgoing, items] = await peer.double.stream({n: 0});
    for (const n of range(1, 200)) outgoing.push({n});
    outgoing.end();
    expect((await all(items)).map(({n}) => n), range(0, 200).map((n) => 2 * n), 'items');
  }),
  'double-cancel': () => connected(async (peer) => {
    const [outgoing, items, close] = await peer.double.stream({n: 0});
    for (const n of range(1, 1000)) outgoing.push({n});
    expect((await all(items, 10)).length, 10, 'items');
    close();
    await alive(peer);
  }),
  fail: () => connected(async (peer) => {
    const error = await refused(peer.fail.rpc({n: 5}), 'BOOM', 'error');
    expect(error, {code: 'BOOM', message: 'boom', extras: {n: 5}}, 'error');
    await alive(peer);
  }),
  'fail-stream': () => connected(async (peer) => {
    const [items] = await peer['fail-stream'].subscribe({n: 2});
    const found = [];
    for await (const item of items) found.push(item);
    expect(found.slice(0, 2), [{ok: true, payload: {n: 0}}, {ok: true, payload: {n: 1}}], 'items');
    expect(found[2] && found[2].payload.code, 'BOOM', 'the error after them');
  }),
  'errors-between': () => connected(async (peer) => {
    const [items] = await peer.gaps.subscribe({n: 777});
    const found = [];
    for await (const item of items) found.push(item.ok ? item.payload.n : item.payload);
    expect(found, [0, 1, {code: 'BOOM', message: 'boom', extras: {n: 777}}, 777], 'items');
    await alive(peer);
  }),
  unknown: () => connected(async (peer) => {
    await refused(peer.nowhere.rpc({}), 'INVALID_REQUEST', 'error');
    await alive(peer);
  }),
  invalid: () => connected(async (peer) => {
    await refused(peer.slow.rpc({n: 'x'}), 'INVALID_REQUEST', 'error');
    await alive(peer);
  }),
  slow: () => connected(async (peer) => {
    let over = false;
    const slow = peer.slow.rpc({n: 300}).then(() => { over = true; });
    await alive(peer);
    expect(over, false, 'slow is over before a later echo');
    await answer(slow);
  }),
  'slow-cancel': () => { throw new Error('the library cannot cancel a call'); },
  heartbeat: () => connected(async (peer) => {
    await alive(peer);
    await sleep(3000);
    await alive(peer);
  }),
  resume: () => connected(async (peer) => {
    const [outgoing, items] = await peer.double.stream({n: 0});
    (async () => {
      for (const n of range(1, 300)) {
        outgoing.push({n});
        await sleep(5);
      }
      outgoing.end();
    })();
    expect((await all(items)).map(({n}) => n), range(0, 300).map((n) => 2 * n), 'items');
  }, {port: cutPort, baseIntervalMs: 10, maxJitterMs: 10, attemptBudgetCapacity: 1000}),
};

// Messages that take longer than the heartbeat timeout of this implementation.
const slowly = {
  'slow-echo': () => connected(async (peer) => {
    const data = 'x'.repeat(200000);
    expect(well(await peer.echo.rpc({data}), 'echo').data.length, data.length, 'size');
  }, {port: cutPort}),
  'slow-blob': () => connected(async (peer) => {
    const [items] = await peer.blob.subscribe({number: 3, size: 150000});
    expect((await all(items)).map(({text}) => text.length), Array(3).fill(150000), 'sizes');
  }, {port: cutPort}),
  'slow-double': () => connected(async (peer) => {
    const [outgoing, items] = await peer.double.stream({n: 0});
    for (const n of range(1, 1000)) outgoing.push({n});
    outgoing.end();
    expect((await all(items)).map(({n}) => n), range(0, 1000).map((n) => 2 * n), 'items');
  }, {port: cutPort}),
};

const results = {};
for (const [name, check] of Object.entries(slow ? slowly : checks)) {
  try {
    await within(Promise.resolve().then(check), CHECK_TIMEOUT_MS, 'not done');
    results[name] = 'ok';
  } catch (error) {
    results[name] = error.message;
  }
}
console.log(JSON.stringify({peer: 'river-js', role: 'client', checks: results}));
process.exit(Object.values(results).every((result) => result === 'ok') ? 0 : 1);
