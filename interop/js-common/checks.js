// The interop checks, for every version of rsocket-js. interop/README.md describes them.
//
// Each version provides `connect({transport, host, port, keepAlive, lifetime, mtu, resume, leases})`, a promise of an object with
//   call(payload)                     -> {answer: promise of a payload, cancel()}
//   stream(payload, collector)        -> nothing; the collector gets items
//   channel(payload, items, collector)-> nothing; `items` (an array of Buffers) is sent as the other side requests items
//   fire(payload)
//   close()
// It fails calls that have no lease if it was created with `leases`.
// A payload is {data, metadata}, both Buffers, null or undefined. Errors have `code` and `text`.
// Each check uses its own connection.
'use strict';

const CHECK_TIMEOUT_MS = 30000;
const ANSWER_TIMEOUT_MS = 10000;
const FRAGMENT_BYTES = 64 * 1024;
const MEGABYTES_20 = 20 * 1024 * 1024;
const UNBOUNDED = 0x7fffffff;
const LEASE_CALLS = 10; // which needs three leases
const LEASE_MS = 1800; // their minimum duration: two intervals, less the inaccuracy of clocks and timers

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

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

// Collects the items of a stream, requesting `window` at a time; cancels after `stop` items.
class Collector {
  constructor(window, stop = Infinity) {
    this.window = window;
    this.asked = window;
    this.stop = stop;
    this.items = [];
    this.completions = 0;
    this.done = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.onError = reject;
    });
  }

  onNext(payload) {
    this.items.push(payload);
    const count = this.items.length;
    if (count > this.asked) {
      this.onError(new Error(`${count} items arrived, but only ${this.asked} were requested`));
    } else if (count === this.stop) {
      this.subscription.cancel();
      this.resolve();
    } else if (count === this.asked) {
      this.ask();
    }
  }

  async ask() {
    if (this.pause) await this.pause();
    this.asked += this.window;
    this.subscription.request(this.window);
  }

  onComplete() {
    this.completions += 1;
    this.resolve();
  }

  async texts() {
    await this.done;
    return this.items.map((item) => (item.data || Buffer.alloc(0)).toString());
  }

  async sizes() {
    await this.done;
    return this.items.map((item) => (item.data || Buffer.alloc(0)).length);
  }
}

const range = (from, to) => Array.from({length: to - from}, (_, n) => String(from + n));
const buffers = (texts) => texts.map((text) => Buffer.from(text));

// Builds the checks from `connect` and `encode(route, note)`, which creates composite metadata. Connections to
// `cutPort` are cut repeatedly.
function makeChecks(connect, encode, transport, host, port, cutPort) {
  const request = (route, data = '', note = undefined) => ({
    data: Buffer.from(data),
    metadata: encode(route, note),
  });
  const connected = async (run, options = {}) => {
    const defaults = {transport, host, port, keepAlive: 10000, lifetime: 60000, mtu: FRAGMENT_BYTES, resume: false, leases: false};
    const peer = await connect({...defaults, ...options});
    try {
      await run(peer);
    } finally {
      peer.close();
    }
  };
  const answer = (peer, payload, ms = ANSWER_TIMEOUT_MS) => within(peer.call(payload).answer, ms, 'no answer');
  const alive = async (peer) => expect((await answer(peer, request('echo', 'alive'))).data.toString(), 'alive', 'echo afterwards');
  const collect = (peer, payload, window, stop) => {
    const collector = new Collector(window, stop);
    peer.stream(payload, collector);
    return collector;
  };
  const converse = (peer, payload, texts, window, stop) => {
    const collector = new Collector(window, stop);
    peer.channel(payload, buffers(texts), collector);
    return collector;
  };
  const echoOf = (size) => () => connected(async (peer) => {
    const data = Buffer.alloc(size, Buffer.from(Array.from({length: 256}, (_, n) => n)));
    const got = (await answer(peer, {...request('echo'), data}, CHECK_TIMEOUT_MS)).data || Buffer.alloc(0);
    expect(got.length, size, 'size');
    expect(got.equals(data), true, 'same data');
  });
  const refused = (payload) => connected(async (peer) => {
    const got = await answer(peer, payload).catch((error) => error);
    if (!(got instanceof Error)) throw new Error(`an answer: ${got.data}`);
    if (got.code === undefined) throw got;
    await alive(peer);
  });

  return {
    echo: () => connected(async (peer) => {
      const sent = request('echo', 'hello', 'note');
      const got = await answer(peer, sent);
      expect(got.data.toString(), 'hello', 'data');
      expect(got.metadata && got.metadata.toString('hex'), sent.metadata.toString('hex'), 'metadata');
    }),
    'echo-empty': echoOf(0),
    'echo-1B': echoOf(1),
    'echo-100kB': echoOf(100000),
    'echo-20MB': echoOf(MEGABYTES_20),
    'echo-shreds': () => connected(async (peer) => {
      const sent = {...request('echo', '', 'note'.repeat(250)), data: Buffer.alloc(10000)};
      const got = await answer(peer, sent);
      expect(got.data.length, 10000, 'size');
      expect(got.metadata && got.metadata.toString('hex'), sent.metadata.toString('hex'), 'metadata');
    }, {mtu: 64}),
    count: () => connected(async (peer) => {
      const collector = collect(peer, request('count', '1000'), UNBOUNDED);
      expect(await collector.texts(), range(0, 1000), 'items');
      await sleep(50);
      expect(collector.completions, 1, 'completions');
    }),
    'count-none': () => connected(async (peer) => {
      expect(await collect(peer, request('count', '0'), 8).texts(), [], 'items');
    }),
    'count-window': () => connected(async (peer) => {
      expect(await collect(peer, request('count', '100'), 7).texts(), range(0, 100), 'items');
    }),
    'count-cancel': () => connected(async (peer) => {
      const collector = collect(peer, request('count', '1000000'), 16, 40);
      await collector.done;
      await alive(peer);
      await sleep(300);
      expect(collector.items.length <= collector.asked, true, `${collector.items.length} items, within the window`);
    }),
    'no-metadata': () => connected(async (peer) => {
      const collector = collect(peer, request('count', '1'), 8);
      await collector.done;
      expect(collector.items[0].metadata == null, true, 'metadata is absent');
    }),
    blob: () => connected(async (peer) => {
      expect(await collect(peer, request('blob', '5,100000'), 2).sizes(), Array(5).fill(100000), 'sizes');
    }),
    'blob-empty': () => connected(async (peer) => {
      const sizes = collect(peer, request('blob', '3,0'), 8).sizes();
      expect(await within(sizes, ANSWER_TIMEOUT_MS, 'no end'), [0, 0, 0], 'sizes');
    }),
    'blob-20MB': () => connected(async (peer) => {
      expect(await collect(peer, request('blob', `1,${MEGABYTES_20}`), 1).sizes(), [MEGABYTES_20], 'sizes');
    }),
    sum: () => connected(async (peer) => {
      expect(await converse(peer, request('sum', '1'), range(2, 101), 4).texts(), ['5050'], 'sum');
    }),
    'sum-late': () => connected(async (peer) => {
      expect(await converse(peer, request('sum'), range(1, 101), 4).texts(), ['5050'], 'sum');
    }),
    'sum-one': () => connected(async (peer) => {
      const texts = converse(peer, request('sum', '7'), [], 4).texts();
      expect(await within(texts, ANSWER_TIMEOUT_MS, 'no sum'), ['7'], 'sum');
    }),
    double: () => connected(async (peer) => {
      const items = await converse(peer, request('double', '0'), range(1, 200), 5).texts();
      expect(items, range(0, 200).map((n) => String(2 * n)), 'items');
    }),
    'double-cancel': () => connected(async (peer) => {
      await converse(peer, request('double', '0'), range(1, 100000), 5, 10).done;
      await alive(peer);
    }),
    log: () => connected(async (peer) => {
      peer.fire(request('log', 'a line'));
      await alive(peer);
    }),
    fail: () => connected(async (peer) => {
      const got = await answer(peer, request('fail')).catch((error) => error);
      expect([got.code, got.text], [0x301, 'boom'], 'code and text');
      await alive(peer);
    }),
    unknown: () => refused(request('no.such.procedure')),
    unrouted: () => refused({data: Buffer.from('data'), metadata: undefined}),
    slow: () => connected(async (peer) => {
      const started = Date.now();
      let over = false;
      const slow = answer(peer, request('slow', '300')).then(() => (over = true));
      await alive(peer);
      expect(over, false, 'slow is over before a later echo');
      await slow;
      expect(Date.now() - started >= 299, true, 'took 300 ms');
    }),
    'slow-cancel': () => connected(async (peer) => {
      const call = peer.call(request('slow', '10000'));
      await sleep(50);
      call.cancel();
      await alive(peer);
    }),
    keepalive: () => connected(async (peer) => {
      await sleep(3000);
      await alive(peer);
    }, {keepAlive: 200, lifetime: 1200}),
    resume: () => connected(async (peer) => {
      const collector = collect(peer, request('count', '3000'), 20);
      collector.pause = () => sleep(10);
      expect(await collector.texts(), range(0, 3000), 'items');
    }, {port: cutPort, resume: true, keepAlive: 500, lifetime: 5000}),
    lease: () => connected(async (peer) => {
      const started = Date.now();
      for (let calls = 0; calls < LEASE_CALLS;) {
        const got = await answer(peer, request('echo', String(calls))).catch((error) => error);
        if (!(got instanceof Error)) calls += 1;
        // An error with a code is from the other side, which must not reject any request of a client that honors leases.
        else if (got.code !== undefined || !/lease/i.test(got.message)) throw got;
        else await sleep(20);
      }
      expect(Date.now() - started >= LEASE_MS, true, 'the calls took as long as the leases require');
    }, {leases: true}),
  };
}

// Runs the checks one after another (with `--lease` only the check of leases, otherwise all others), prints the JSON
// object and ends the process.
async function main(peer, connect, encode) {
  console.warn = () => {}; // the libraries write their warnings to the console
  // If a socket breaks after the library has removed its listeners, the error would end the whole process.
  let crash;
  process.on('uncaughtException', (error) => crash(error));
  const [transport, host, port, cutPort, option] = process.argv.slice(2);
  const checks = {};
  for (const [name, run] of Object.entries(makeChecks(connect, encode, transport, host, Number(port), Number(cutPort)))) {
    if ((name === 'lease') !== (option === '--lease')) continue;
    try {
      const crashed = new Promise((_, reject) => { crash = reject; });
      await within(Promise.race([run(), crashed]), CHECK_TIMEOUT_MS, 'not done');
      checks[name] = 'ok';
    } catch (error) {
      checks[name] = error.message || String(error);
    }
  }
  console.log(JSON.stringify({peer, role: 'client', checks}));
  process.exit(Object.values(checks).every((result) => result === 'ok') ? 0 : 1);
}

module.exports = {main};
