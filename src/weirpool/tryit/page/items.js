// Shows received items, as JSON or as a table. Only the last ones are kept.

import { h } from "./form.js";

const MAX_ITEMS = 500;
const MAX_CHARACTERS = 2_000_000;
const MAX_COLUMNS = 20;
const MAX_SHOWN = 20_000;
const MAX_LINE = 100;
const MAX_LEVELS = 100;

/** A number as it was written: JavaScript's own numbers lose digits. */
class Digits {
  constructor(text) {
    this.text = text;
  }
}

/** The last items of a request. */
export class Items {
  constructor(place, dropped) {
    this.place = place;
    this.dropped = dropped;
    this.table = false;
    this.clear();
  }

  clear() {
    this.kept = [];
    this.characters = 0;
    this.gone = 0;
    this.draw();
  }

  add(items) {
    for (const item of items) {
      this.kept.push(item);
      this.characters += (item.text ?? item.hex).length;
    }
    while (this.kept.length > MAX_ITEMS || (this.characters > MAX_CHARACTERS && this.kept.length > 1)) {
      const first = this.kept.shift();
      this.characters -= (first.text ?? first.hex).length;
      this.gone += 1;
    }
    if (items.length) this.draw();
  }

  show(table) {
    this.table = table;
    this.draw();
  }

  /** Returns true if a table shows more than the items themselves. */
  get tabular() {
    return this.kept.length > 0 && isObject(parsed(this.kept[0]));
  }

  draw() {
    const atEnd = this.place.scrollHeight - this.place.scrollTop - this.place.clientHeight < 8;
    const made = this.table && this.tabular ? [this.rows()] : this.kept.map(block);
    this.place.replaceChildren(...made);
    this.dropped.hidden = this.gone === 0;
    this.dropped.textContent = `${this.gone.toLocaleString("en")} earlier items are no longer shown`;
    if (atEnd) this.place.scrollTop = this.place.scrollHeight;
  }

  rows() {
    const values = this.kept.map(parsed);
    const names = new Set();
    for (const value of values) {
      for (const name of isObject(value) ? Object.keys(value) : []) if (names.size < MAX_COLUMNS) names.add(name);
    }
    const numeric = (name) => values.some((value) => isObject(value) && value[name] instanceof Digits);
    const head = h("tr", {}, ...[...names].map((name) =>
      h("th", { scope: "col", class: numeric(name) ? "number" : null }, name)));
    const body = values.map((value, index) => {
      if (!isObject(value)) return h("tr", {}, h("td", { colspan: names.size || 1 }, plain(this.kept[index])));
      return h("tr", {}, ...[...names].map((name) => cell(value[name])));
    });
    return h("table", {}, h("thead", {}, head), h("tbody", {}, ...body));
  }
}

function cell(value) {
  if (value instanceof Digits) return h("td", { class: "number" }, value.text);
  if (value === undefined) return h("td", {}, "");
  return h("td", {}, typeof value === "string" ? value : written(value, ""));
}

function block(item) {
  const value = parsed(item);
  const text = value === undefined ? plain(item) : written(value, "");
  const shown = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
  return h("pre", {}, item.cut || text.length > MAX_SHOWN ? `${shown}\n(${item.size.toLocaleString("en")} bytes)` : shown);
}

function plain(item) {
  return item.text ?? item.hex;
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Digits);
}

/** Returns the value of an item that is JSON; undefined for others. */
function parsed(item) {
  if (item.value === undefined && !item.other) {
    try {
      item.value = JSON.parse(item.text, (key, value, context) =>
        typeof value === "number" ? new Digits(context?.source ?? String(value)) : value);
    } catch {
      item.other = true;
    }
  }
  return item.value;
}

/** Returns a value as JSON: on one line if it is short. */
function written(value, indent, level = 0) {
  const short = line(value, MAX_LINE - indent.length);
  if (short !== null) return short;
  if (value instanceof Digits) return value.text;
  if (typeof value === "string") return JSON.stringify(value);
  const list = Array.isArray(value);
  const [open, close] = list ? "[]" : "{}";
  if (level > MAX_LEVELS) return `${open}…${close}`;
  const inner = `${indent}  `;
  const parts = list
    ? value.map((each) => written(each, inner, level + 1))
    : Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${written(each, inner, level + 1)}`);
  return `${open}\n${parts.map((part) => inner + part).join(",\n")}\n${indent}${close}`;
}

/** Returns a value as JSON on one line; null if it is longer than `room`. It looks at no more than what fits. */
function line(value, room) {
  if (value instanceof Digits) return value.text.length <= room ? value.text : null;
  if (typeof value !== "object" || value === null) {
    const text = typeof value === "string" && value.length > room ? null : JSON.stringify(value);
    return text !== null && text.length <= room ? text : null;
  }
  const list = Array.isArray(value);
  let text = "";
  for (const name of list ? value.keys() : Object.keys(value)) {
    const key = list ? "" : `${JSON.stringify(name)}: `;
    const before = `${text}${text ? ", " : ""}${key}`;
    const each = before.length > room ? null : line(value[name], room - before.length - 2);
    if (each === null) return null;
    text = before + each;
  }
  const [open, close] = list ? "[]" : "{}";
  return text.length + 2 <= room ? `${open}${text}${close}` : null;
}
