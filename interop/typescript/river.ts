// The generated services for @replit/river 0.17: `node built/river.js URL`.
import { createClient } from "@replit/river";
import { BinaryCodec } from "@replit/river/codec";
import { WebSocketClientTransport } from "@replit/river/transport/ws/client";
import type { Static } from "@sinclair/typebox";
import { WebSocket } from "ws";
import { Quote, type Services } from "./generated/river.js";
import { equal, main } from "./checks.js";

const url = process.argv[2] as string;
const connected = async () => new WebSocket(url) as never;
const transport = new WebSocketClientTransport(connected, "typescript", { codec: BinaryCodec });
const { quotes } = createClient<Services>(transport, "SERVER");
const acme = { name: "ACME" };

await main("typescript-river", {
  call: async () => {
    const result = await quotes.latest.rpc(acme);
    if (!result.ok) throw new Error(result.payload.code);
    const quote: Static<typeof Quote> = result.payload;
    equal([quote.price, quote.at, quote.side], [1.5, "2026-01-02T03:04:05Z", "bid"], "quote");
    const same = await quotes.check.rpc(quote);
    equal(same.ok && same.payload, quote, "the same quote");
  },
  errors: async () => {
    const result = await quotes.latest.rpc({ name: "?" });
    if (result.ok || result.payload.code !== "UNKNOWN_SYMBOL") throw new Error("no error");
    equal(result.payload.extras.name, "?", "extras");
  },
  stream: async () => {
    const [output] = await quotes.live.subscribe(acme);
    const prices: number[] = [];
    for await (const result of output) if (result.ok) prices.push(result.payload.price);
    equal([prices.length, prices.at(-1)], [1000, 999], "prices");
  },
  upload: async () => {
    const quote: Quote = { symbol: acme, price: 1, at: "2026-01-02T03:04:05Z" };
    const [input, result] = await quotes.load.upload(acme);
    input.push({ type: "order", quote, count: 3 });
    input.push({ type: "order", quote });
    input.push({ type: "stop", reason: "enough" });
    input.end();
    const answer = await result;
    equal(answer.ok && answer.payload, { count: 4 }, "ordered");
  },
  channel: async () => {
    const [input, output] = await quotes.ask.stream(acme);
    input.push({ count: 2 });
    input.push({ count: 3 });
    input.end();
    const prices: number[] = [];
    for await (const result of output) if (result.ok) prices.push(result.payload.price);
    equal(prices, [2, 3], "prices");
  },
});
