// The page of feeds. Texts of peers are only ever set as textContent, by `element`.

import { shown } from "./texts.js";

const SECONDS = 2;
const GOOD = new Set(["live", "complete", "standby"]);
const BUSY = new Set(["connecting", "waiting for budget"]);

const number = new Intl.NumberFormat("en");

function count(value) {
  return value === null ? "–" : number.format(Math.round(value));
}

function size(value) {
  if (value === null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

function age(value) {
  if (value === null) return "–";
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  return value < 172800 ? `${Math.round(value / 3600)} h` : `${Math.round(value / 86400)} d`;
}

function worst(feed, field) {
  const lags = Object.values(feed.readers)
    .map((lag) => lag[field])
    .filter((lag) => lag !== null);
  return lags.length ? Math.max(...lags) : null;
}

// Heading, value to sort by, text; the first columns are text.
const FEEDS = [
  ["Feed", (feed) => feed.name],
  ["State", (feed) => feed.state],
  ["Rows/s", (feed) => feed.rate, count],
  ["Lag, rows", (feed) => worst(feed, "rows"), count],
  ["Lag, time", (feed) => worst(feed, "seconds"), age],
  ["Budget left", (feed) => feed.budget_free, size],
  ["Credit", (feed) => feed.credit, count],
  ["Gaps", (feed) => feed.gaps, count],
  ["Reconnects", (feed) => feed.reconnects, count],
  ["Position", (feed) => feed.position, count],
  ["Stream", (feed) => `${feed.route}, ${feed.url}`],
];
const READERS = [
  ["Reader", (reader) => reader.reader],
  ["Feeds", (reader) => reader.feeds, count],
  ["Lag, rows", (reader) => reader.rows, count],
  ["Longest lag", (reader) => reader.seconds, age],
];
const SERVED = [
  ["Journal", (served) => served.name],
  ["Connections", (served) => served.connections, count],
  ["URL", (served) => served.url],
  ["Folder", (served) => served.journal],
];

const tables = {
  feeds: { columns: FEEDS, sorted: 0, falling: false },
  readers: { columns: READERS, sorted: 0, falling: false },
  served: { columns: SERVED, sorted: 0, falling: false },
};
let newest = null;

function element(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = shown(text);
  if (className) made.className = className;
  return made;
}

function addHeadings(id) {
  const table = tables[id];
  const row = document.querySelector(`#${id} thead tr`);
  table.columns.forEach(([title, , format], index) => {
    const cell = element("th", "", format ? "" : "text");
    cell.scope = "col";
    const button = element("button", title);
    button.type = "button";
    button.addEventListener("click", () => {
      table.falling = table.sorted === index ? !table.falling : Boolean(format);
      table.sorted = index;
      show();
    });
    cell.append(button);
    row.append(cell);
  });
}

function compare(one, other) {
  if (one === other) return 0;
  if (one === null) return -1;
  if (other === null) return 1;
  return one < other ? -1 : 1;
}

function cell([title, value, format], item) {
  const raw = value(item);
  const made = element("td", "", format ? "" : "text");
  made.dataset.label = title;
  if (title === "State") {
    const tone = GOOD.has(raw) ? "good" : BUSY.has(raw) ? "busy" : "bad";
    const text = element("span", "");
    text.append(element("span", raw, tone));
    const why = [item.reason, item.problem === item.reason ? "" : item.problem].filter(Boolean).join(" ");
    if (why) {
      made.classList.add("wide");
      text.append(element("span", why, "reason"));
    }
    made.append(text);
  } else {
    if (title === "Stream") made.classList.add("wide");
    if (title === "Gaps" && raw) made.classList.add("bad");
    made.append(element("span", format ? format(raw) : raw));
  }
  return made;
}

function fill(id, items, nothing) {
  const { columns, sorted, falling } = tables[id];
  const key = columns[sorted][1];
  const order = [...items].sort((one, other) => compare(key(one), key(other)) * (falling ? -1 : 1));
  document.querySelectorAll(`#${id} th`).forEach((heading, index) => {
    if (index === sorted) heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
    else heading.removeAttribute("aria-sort");
  });
  const rows = order.map((item) => {
    const row = document.createElement("tr");
    row.append(...columns.map((column) => cell(column, item)));
    return row;
  });
  if (!rows.length) {
    const row = document.createElement("tr");
    const only = element("td", nothing, "empty");
    only.colSpan = columns.length;
    row.append(only);
    rows.push(row);
  }
  document.querySelector(`#${id} tbody`).replaceChildren(...rows);
}

function show() {
  if (!newest) return;
  const wanted = document.getElementById("search").value.toLowerCase();
  const matching = newest.feeds.filter((feed) =>
    [feed.name, feed.route, feed.url, feed.state].some((text) => text.toLowerCase().includes(wanted)),
  );
  fill("feeds", matching, wanted ? "No feed matches." : "There are no feeds.");
  fill("readers", newest.readers, "No reader has committed a position.");
  document.getElementById("serving").hidden = !newest.served.length;
  fill("served", newest.served, "No journal is served.");
}

function summarize(text, bad) {
  const summary = document.getElementById("summary");
  if (summary.textContent !== shown(text)) summary.textContent = shown(text);
  summary.className = bad ? "bad" : "";
}

async function refresh() {
  try {
    const response = await fetch("status", { signal: AbortSignal.timeout(10000) });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    newest = await response.json();
    const states = Object.entries(newest.states).map(([state, feeds]) => `${number.format(feeds)} ${state}`);
    const wrong = [newest.healthy ? "" : "the collector does not answer", newest.problem].filter(Boolean);
    summarize([...wrong, states.join(", ") || "no feeds"].join("; "), wrong.length > 0);
    show();
  } catch (error) {
    summarize(`No answer from the collector: ${error.message}`, true);
  }
  setTimeout(refresh, SECONDS * 1000);
}

addHeadings("feeds");
addHeadings("readers");
addHeadings("served");
document.getElementById("search").addEventListener("input", show);
document.getElementById("filter").addEventListener("submit", (event) => event.preventDefault());
refresh();
