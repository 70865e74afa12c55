// The generated client for rsocket-js: `node built/rsocket.js URL`.
import { RSocketConnector } from "rsocket-core";
import { WebsocketClientTransport } from "rsocket-websocket-client";
import { WebSocket } from "ws";
import { type Order, Quotes, type Quote, Routes, setup, type Stop, UnknownSymbol } from "./generated/rsocket.js";
import { equal, fails, main } from "./checks.js";

const url = process.argv[2] as string;
const transport = new WebsocketClientTransport({
  url,
  wsCreator: (address) => new WebSocket(address) as unknown as globalThis.WebSocket,
});
const rsocket = await new RSocketConnector({ setup, transport }).connect();
const quotes = new Quotes(rsocket);
const acme = { name: "ACME" };

await main("typescript-rsocket", {
  call: async () => {
    const quote: Quote = await quotes.latest(acme);
    equal([quote.price, quote.at, quote.side], [1.5, "2026-01-02T03:04:05Z", "bid"], "quote");
    // What came back can be sent.
    equal(await quotes.check(quote), quote, "the same quote");
  },
  errors: async () => {
    const error = await fails(UnknownSymbol, () => quotes.latest({ name: "?" }));
    equal([error.code, error.extras.name], [UnknownSymbol.code, "?"], "error");
    await fails(UnknownSymbol, () => quotes.live({ name: "?" }).next());
    const invalid = await fails(Error, () => quotes.latest({ name: "far too long" }));
    if (!invalid.message.includes("/name")) throw new Error(`the error does not name the field: ${invalid.message}`);
  },
  stream: async () => {
    const prices: number[] = [];
    for await (const quote of quotes.live(acme)) prices.push(quote.price);
    equal([prices.length, prices.at(-1)], [1000, 999], "prices");
  },
  credit: async () => {
    const live = quotes.live(acme, { credit: 10 });
    await live.next();
    // A call is answered after the items that were allowed.
    await quotes.latest(acme);
    equal(live.waiting, 9, "items beyond the credit");
    for (let number = 1; number < 500; number++) equal((await live.next()).value?.price, number, "price");
    live.cancel();
    equal((await live.next()).done, true, "canceled");
  },
  cancel: async () => {
    for await (const quote of quotes.live(acme, { credit: 5 })) if (quote.price === 12) break;
    const controller = new AbortController();
    const live = quotes.live(acme, { credit: 2, signal: controller.signal });
    await live.next();
    controller.abort(new Error("no more"));
    equal((await fails(Error, () => live.next())).message, "no more", "reason");
    const late = await fails(Error, () => quotes.latest(acme, { signal: AbortSignal.abort(new Error("late")) }));
    equal(late.message, "late", "reason");
  },
  upload: async () => {
    const quote = await quotes.latest(acme);
    const orders: (Order | Stop)[] = [{ type: "order", quote, count: 3 }, { type: "order", quote }, { type: "stop" }];
    equal((await quotes.load(acme, orders)).count, 4, "ordered");
    async function* many() {
      for (let count = 0; count < 500; count++) yield { type: "order" as const, quote, count: 2 };
    }
    equal((await quotes.load(acme, many())).count, 1000, "ordered");
  },
  channel: async () => {
    const counts = Array.from({ length: 200 }, (_, count) => ({ count }));
    const prices: number[] = [];
    for await (const quote of quotes.ask(acme, counts, { credit: 8 })) prices.push(quote.price);
    equal(prices, counts.map((each) => each.count), "prices");
    async function* broken() {
      yield { count: 1 };
      throw new Error("the items failed");
    }
    const asked = quotes.ask(acme, broken());
    await fails(Error, async () => { for await (const quote of asked) void quote; });
  },
  fire: async () => {
    await quotes.log("hello");
    const routes = new Routes(rsocket);
    while (!(await routes.logged(acme)).includes("hello"));
  },
});
