// Forms for JSON Schemas. They write JSON text, so that numbers keep all their digits.
//
// The schemas are well-formed: Weirpool has left out what is not. They may still ask for more than a page can show.

import { shown } from "./texts.js";

const MAX_ENTRIES = 200;
const MAX_CONTROLS = 200;
const MAX_LEVELS = 24;
const MAX_CHOICES = 500;
const CHOICES_OF_CONTROL = 10;
const MAX_CHARACTERS = 2000;

/** Returns an element. Strings become text, never markup. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, shown(value));
  }
  made.append(...children.filter((child) => child !== null).map((child) =>
    typeof child === "string" ? shown(child) : child));
  return made;
}

let ids = 0;

/** What may be made at once from one description: beyond it, a part is written as JSON. */
class Budget {
  constructor() {
    this.controls = MAX_CONTROLS;
    this.level = 0;
  }

  /** Takes controls if there are as many left, and returns whether there were. */
  afford(count) {
    if (count > this.controls) return false;
    this.controls -= count;
    return true;
  }

  /** Takes what a list of choices takes, and returns whether it can be shown. */
  offer(choices) {
    return choices.length <= MAX_CHOICES && this.afford(Math.ceil(choices.length / CHOICES_OF_CONTROL));
  }
}

/**
 * Returns a control for a schema: `element`, and `read()`, which returns JSON text or throws an Error. `label` is the
 * element that the label names, if there is one. Each action of a person has a budget of its own.
 */
export function control(schema, definitions, name, value, budget = new Budget()) {
  if (budget.level >= MAX_LEVELS || !budget.afford(1)) return anything(name, value);
  budget.level += 1;
  try {
    return chosen(resolve(schema, definitions), definitions, name, value, budget);
  } finally {
    budget.level -= 1;
  }
}

function chosen(resolved, definitions, name, value, budget) {
  const choices = resolved.anyOf ?? resolved.oneOf;
  if ("const" in resolved) return constant(resolved.const);
  if (resolved.enum) return enumeration(resolved.enum, name, value, budget);
  if (choices) return variants(choices, definitions, name, value, budget);
  if (Array.isArray(resolved.type)) {
    return variants(resolved.type.map((type) => also(resolved, { type })), definitions, name, value, budget);
  }
  switch (resolved.type) {
    case "object":
      return resolved.properties
        ? object(resolved, definitions, name, value, budget)
        : dictionary(resolved, definitions, name, value, budget);
    case "array":
      return resolved.prefixItems || Array.isArray(resolved.items)
        ? tuple(resolved, definitions, name, value, budget)
        : array(resolved, definitions, name, value, budget);
    case "string":
      return text(resolved, name, value);
    case "integer":
    case "number":
      return number(resolved, name, value);
    case "boolean":
      return boolean(name, value);
    case "null":
      return constant(null);
    default:
      return resolved.properties ? object(resolved, definitions, name, value, budget) : anything(name, value);
  }
}

/** Returns a schema without a reference at its top. */
export function resolve(schema, definitions) {
  let found = typeof schema === "object" && schema !== null ? schema : {};
  for (let step = 0; step < 32 && typeof found.$ref === "string"; step++) {
    const { $ref, ...more } = found;
    const target = referred($ref);
    found = also(Object.hasOwn(definitions, target) ? definitions[target] : {}, more);
  }
  return found;
}

/** Returns a schema with further keywords. It is not copied, because it may be large. */
function also(schema, more) {
  return Object.keys(more).length ? Object.assign(Object.create(schema), more) : schema;
}

function referred(reference) {
  return reference.replace(/^#\/\$defs\//, "");
}

/** Returns the first part of a text. */
function brief(text) {
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;
}

/** Returns the type of a schema in a word, for choices. */
export function word(schema, definitions, level = 0) {
  if (typeof schema?.$ref === "string") return brief(referred(schema.$ref));
  const found = resolve(schema, definitions);
  if ("const" in found) return brief(JSON.stringify(found.const));
  if (found.title) return brief(found.title);
  if (found.enum) return "one of a list";
  if (found.type === "array") {
    return `list of ${found.items && level < 4 ? word(found.items, definitions, level + 1) : "anything"}`;
  }
  const names = { string: "text", integer: "integer", number: "number", boolean: "yes or no", null: "none" };
  return names[found.type] ?? brief(String(found.type ?? "anything"));
}

function constant(value) {
  const element = h("div", { class: "control code" }, brief(JSON.stringify(value)));
  return { element, read: () => JSON.stringify(value) };
}

function enumeration(values, name, value, budget) {
  if (!budget.offer(values)) return anything(name, value);
  const select = h("select", { "aria-label": name });
  values.forEach((each, index) => {
    const label = brief(typeof each === "string" ? each : JSON.stringify(each));
    select.append(h("option", { value: index, selected: each === value }, label));
  });
  return { element: wrapped(select), label: select, read: () => JSON.stringify(values[select.value]) };
}

function text(schema, name, value) {
  const hints = { "date-time": "2026-01-31T12:00:00Z", date: "2026-01-31", time: "12:00:00", uuid: "UUID" };
  const hint = schema.contentEncoding ? "base64" : hints[schema.format] ?? null;
  const input = h("input", {
    "aria-label": name, placeholder: hint, minlength: schema.minLength, maxlength: schema.maxLength,
    autocomplete: "off", spellcheck: "false",
  });
  input.value = typeof value === "string" ? value : typeof schema.default === "string" ? schema.default : "";
  const read = () => {
    const size = [...input.value].length;
    if (size < (schema.minLength ?? 0)) throw wrong(input, `${name}: at least ${schema.minLength} characters`);
    if (size > (schema.maxLength ?? Infinity)) throw wrong(input, `${name}: at most ${schema.maxLength} characters`);
    return JSON.stringify(right(input).value);
  };
  return { element: wrapped(input), label: input, read };
}

function number(schema, name, value) {
  const whole = schema.type === "integer";
  const input = h("input", {
    class: "digits", inputmode: whole ? "numeric" : "decimal", "aria-label": name, autocomplete: "off",
    placeholder: limits(schema),
  });
  const given = value ?? schema.default;
  if (given !== undefined && given !== null) input.value = String(given);
  const pattern = whole ? /^-?\d+$/ : /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/;
  const read = () => {
    const written = input.value.trim();
    if (!pattern.test(written)) throw wrong(input, `${name}: ${whole ? "an integer" : "a number"} is needed`);
    const found = Number(written);
    const fits =
      found >= (schema.minimum ?? -Infinity) && found <= (schema.maximum ?? Infinity) &&
      !(found <= schema.exclusiveMinimum) && !(found >= schema.exclusiveMaximum);
    if (!fits) throw wrong(input, `${name}: ${limits(schema)}`);
    right(input);
    // JSON has no leading zeros.
    return written.replace(/^(-?)0+(?=\d)/, "$1");
  };
  return { element: wrapped(input), label: input, read };
}

function limits(schema) {
  const found = [];
  if (schema.minimum !== undefined) found.push(`at least ${schema.minimum}`);
  if (schema.exclusiveMinimum !== undefined) found.push(`more than ${schema.exclusiveMinimum}`);
  if (schema.maximum !== undefined) found.push(`at most ${schema.maximum}`);
  if (schema.exclusiveMaximum !== undefined) found.push(`less than ${schema.exclusiveMaximum}`);
  return found.join(", ");
}

function boolean(name, value) {
  const input = h("input", { type: "checkbox", "aria-label": name });
  input.checked = value === true;
  return { element: wrapped(input), label: input, read: () => JSON.stringify(input.checked) };
}

function anything(name, value) {
  const input = h("textarea", { rows: 2, "aria-label": name, placeholder: "JSON", spellcheck: "false" });
  input.value = value === undefined ? "" : JSON.stringify(value);
  const read = () => {
    try {
      JSON.parse(input.value);
    } catch {
      throw wrong(input, `${name}: valid JSON is needed`);
    }
    return right(input).value.trim();
  };
  return { element: wrapped(input), label: input, read };
}

function variants(choices, definitions, name, value, budget) {
  if (!budget.offer(choices)) return anything(name, value);
  const place = h("div", { class: "control" });
  const select = h("select", { "aria-label": `${name}: type` });
  choices.forEach((each, index) => select.append(h("option", { value: index }, word(each, definitions))));
  const none = choices.findIndex((each) => resolve(each, definitions).type === "null");
  if (value === null && none >= 0) select.value = none;
  const inner = h("div");
  let made;
  const choose = (given, left) => {
    made = control(choices[select.value], definitions, name, given, left);
    inner.replaceChildren(...(Number(select.value) === none ? [] : [made.element]));
  };
  select.addEventListener("change", () => choose());
  choose(value, budget);
  place.append(select, inner);
  return { element: place, label: select, read: () => made.read() };
}

function object(schema, definitions, name, value, budget) {
  if (Object.keys(schema.properties).length > budget.controls) return anything(name, value);
  const place = h("fieldset", { class: "control", "aria-label": name });
  const required = new Set(schema.required);
  const fields = Object.entries(schema.properties).map(([key, each]) => {
    const given = value && typeof value === "object" && Object.hasOwn(value, key) ? value[key] : undefined;
    const made = field(key, each, definitions, required.has(key), given, budget);
    place.append(made.element);
    return [key, made];
  });
  const read = () => {
    const written = [];
    for (const [key, made] of fields) {
      const found = made.read();
      if (found !== undefined) written.push(`${JSON.stringify(key)}: ${found}`);
    }
    return `{${written.join(", ")}}`;
  };
  return { element: place, read };
}

/** Returns a labeled field. One that is optional is absent until it is switched on. */
function field(key, schema, definitions, required, value, budget) {
  const id = `field-${ids++}`;
  const place = h("div", { class: "control" });
  let made = null;
  const show = (given, left) => {
    made = control(schema, definitions, key, given, left);
    made.label?.setAttribute("id", id);
    place.replaceChildren(made.element);
  };
  const about = resolve(schema, definitions).description;
  const hint = schema.description ?? (schema.$ref ? null : about) ?? null;
  let label;
  if (required) {
    show(value, budget);
    label = h("label", { class: "name", for: id }, key);
  } else {
    const box = h("input", { type: "checkbox" });
    box.checked = value !== undefined;
    const change = (left) => {
      if (box.checked) show(value, left);
      else [made] = [null, place.replaceChildren()];
    };
    budget.afford(1);
    box.addEventListener("change", () => change());
    label = h("label", { class: "name" }, box, ` ${key}`);
    change(budget);
  }
  if (hint !== null) label.append(h("span", { class: "hint" }, brief(hint)));
  return { element: h("div", { class: "field" }, label, place), read: () => made?.read() };
}

function array(schema, definitions, name, value, budget) {
  const first = Array.isArray(value) ? value : new Array(Math.min(schema.minItems ?? 0, 10)).fill(undefined);
  if (first.length > MAX_ENTRIES) return anything(name, value);
  const entries = [];
  const list = h("div");
  const add = (given, left) => {
    if (entries.length >= Math.min(schema.maxItems ?? Infinity, MAX_ENTRIES)) return;
    const made = control(schema.items, definitions, `${name}, item ${entries.length + 1}`, given, left);
    const remove = h("button", { type: "button", class: "plain", "aria-label": `Remove an item of ${name}` }, "✕");
    const entry = h("div", { class: "entry" }, made.element, remove);
    remove.addEventListener("click", () => {
      entries.splice(entries.indexOf(made), 1);
      entry.remove();
      more.focus();
    });
    entries.push(made);
    list.append(entry);
  };
  const more = h("button", { type: "button", onclick: () => add() }, "Add");
  more.setAttribute("aria-label", `Add an item to ${name}`);
  first.forEach((given) => add(given, budget));
  return {
    element: h("fieldset", { class: "control", "aria-label": name }, list, more),
    read: () => `[${entries.map((made) => made.read()).join(", ")}]`,
  };
}

function tuple(schema, definitions, name, value, budget) {
  const places = schema.prefixItems ?? schema.items;
  if (places.length > budget.controls) return anything(name, value);
  const made = places.map((each, index) =>
    control(each, definitions, `${name}, item ${index + 1}`, Array.isArray(value) ? value[index] : undefined, budget));
  return {
    element: h("fieldset", { class: "control", "aria-label": name }, ...made.map((each) => each.element)),
    read: () => `[${made.map((each) => each.read()).join(", ")}]`,
  };
}

function dictionary(schema, definitions, name, value, budget) {
  const first = value && typeof value === "object" ? Object.entries(value) : [];
  if (first.length > MAX_ENTRIES) return anything(name, value);
  const values = schema.additionalProperties;
  const entries = [];
  const list = h("div");
  const add = (key, given, left) => {
    if (entries.length >= MAX_ENTRIES) return;
    const input = h("input", { class: "key", placeholder: "name", "aria-label": `${name}: a name` });
    input.value = key ?? "";
    const typed = values && typeof values === "object" ? values : {};
    const made = control(typed, definitions, `${name}: its value`, given, left);
    const remove = h("button", { type: "button", class: "plain", "aria-label": `Remove an entry of ${name}` }, "✕");
    const entry = h("div", { class: "entry" }, input, made.element, remove);
    const pair = [input, made];
    remove.addEventListener("click", () => {
      entries.splice(entries.indexOf(pair), 1);
      entry.remove();
      more.focus();
    });
    entries.push(pair);
    list.append(entry);
  };
  const more = h("button", { type: "button", onclick: () => add() }, "Add");
  more.setAttribute("aria-label", `Add an entry to ${name}`);
  first.forEach(([key, each]) => add(key, each, budget));
  return {
    element: h("fieldset", { class: "control", "aria-label": name }, list, more),
    read: () => `{${entries.map(([input, made]) => `${JSON.stringify(input.value)}: ${made.read()}`).join(", ")}}`,
  };
}

function wrapped(input) {
  return h("div", { class: "control" }, input);
}

function wrong(input, message) {
  input.setAttribute("aria-invalid", "true");
  input.focus();
  return new Error(message);
}

function right(input) {
  input.removeAttribute("aria-invalid");
  return input;
}
