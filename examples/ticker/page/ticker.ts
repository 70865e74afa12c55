// A table of live prices. The server sends 32 prices at most that the page has not taken, so a page that is paused,
// or hidden, stops the server instead of filling its memory.
import "./buffer.js";
import { RSocketConnector } from "rsocket-core";
import { WebsocketClientTransport } from "rsocket-websocket-client";
import { type Quote, setup, Ticker, UnknownSymbol } from "./quotes.js";

const CREDIT = 32;
const options = new URLSearchParams(location.search);
const url = options.get("server") ?? "ws://127.0.0.1:7878/";
const symbols = (options.get("symbols") ?? "ACME,BOLT,CORK,DUNE").split(",");

const element = (id: string): HTMLElement => document.getElementById(id) as HTMLElement;
const rows = new Map<string, { cell: HTMLTableCellElement; price: number }>();
let taken = 0;

function show(quote: Quote): void {
  let row = rows.get(quote.symbol);
  if (row === undefined) {
    const line = (element("quotes") as HTMLTableSectionElement).insertRow();
    line.insertCell().textContent = quote.symbol;
    row = { cell: line.insertCell(), price: quote.price };
    rows.set(quote.symbol, row);
  }
  row.cell.className = quote.price < row.price ? "down" : "up";
  row.cell.textContent = `${quote.price < row.price ? "▼" : "▲"} ${quote.price.toFixed(2)}`;
  row.price = quote.price;
}

const state = (text: string): void => {
  element("state").textContent = text;
};

element("pause").addEventListener("click", () => {
  const paused = element("pause").getAttribute("aria-pressed") !== "true";
  element("pause").setAttribute("aria-pressed", String(paused));
});

/** Wait until the next frame is drawn, and while the page is paused. */
async function drawn(quotes: { readonly waiting: number }): Promise<void> {
  await new Promise(requestAnimationFrame);
  while (element("pause").getAttribute("aria-pressed") === "true") {
    state(`Paused after ${taken} prices; ${quotes.waiting} wait here`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function main(): Promise<void> {
  const transport = new WebsocketClientTransport({ url, wsCreator: (address) => new WebSocket(address) });
  const rsocket = await new RSocketConnector({ setup, transport }).connect();
  rsocket.onClose(() => state("The connection is closed"));
  const quotes = new Ticker(rsocket).live({ symbols }, { credit: CREDIT });
  for await (const quote of quotes) {
    if (quote.number !== taken) throw new Error(`price ${taken} is missing`);
    taken += 1;
    show(quote);
    state(`${taken} prices`);
    await drawn(quotes);
  }
}

main().catch((error: unknown) => {
  state(error instanceof UnknownSymbol ? `${error.extras.symbols.join(", ")}: ${error.message}` : String(error));
});
