// Forms for JSON Schemas. They write JSON text, so that numbers keep all their digits.

const MAX_ENTRIES = 200;

/** Returns an element. Strings become text, never markup. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

let ids = 0;

/**
 * Returns a control for a schema: `element`, and `read()`, which returns JSON text or throws an Error. `label` is the
 * element that the label names, if there is one.
 */
export function control(schema, definitions, name, value) {
  const resolved = resolve(schema, definitions);
  const choices = resolved.anyOf ?? resolved.oneOf;
  if ("const" in resolved) return constant(resolved.const);
  if (Array.isArray(resolved.enum)) return enumeration(resolved.enum, name, value);
  if (Array.isArray(choices) && choices.length) return variants(choices, definitions, name, value);
  if (Array.isArray(resolved.type)) {
    return variants(resolved.type.map((type) => ({ ...resolved, type })), definitions, name, value);
  }
  switch (resolved.type) {
    case "object":
      return resolved.properties
        ? object(resolved, definitions, name, value)
        : dictionary(resolved, definitions, name, value);
    case "array":
      return Array.isArray(resolved.prefixItems)
        ? tuple(resolved, definitions, name, value)
        : array(resolved, definitions, name, value);
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
      return resolved.properties ? object(resolved, definitions, name, value) : anything(name, value);
  }
}

/** Returns a schema without a reference at its top. */
export function resolve(schema, definitions) {
  let found = schema ?? {};
  for (let step = 0; step < 32 && typeof found.$ref === "string"; step++) {
    const { $ref, ...more } = found;
    found = { ...(definitions[$ref.replace(/^#\/\$defs\//, "")] ?? {}), ...more };
  }
  return found;
}

/** Returns the type of a schema in a word, for choices. */
export function word(schema, definitions) {
  if (typeof schema?.$ref === "string") return schema.$ref.replace(/^#\/\$defs\//, "");
  const found = resolve(schema, definitions);
  if ("const" in found) return JSON.stringify(found.const);
  if (found.title) return found.title;
  if (found.enum) return "one of a list";
  if (found.type === "array") return `list of ${found.items ? word(found.items, definitions) : "anything"}`;
  const names = { string: "text", integer: "integer", number: "number", boolean: "yes or no", null: "none" };
  return names[found.type] ?? found.type ?? "anything";
}

function constant(value) {
  return { element: h("div", { class: "control code" }, JSON.stringify(value)), read: () => JSON.stringify(value) };
}

function enumeration(values, name, value) {
  const select = h("select", { "aria-label": name });
  values.forEach((each, index) => {
    const shown = typeof each === "string" ? each : JSON.stringify(each);
    select.append(h("option", { value: index, selected: each === value }, shown));
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

function variants(choices, definitions, name, value) {
  const place = h("div", { class: "control" });
  const select = h("select", { "aria-label": `${name}: type` });
  choices.forEach((each, index) => select.append(h("option", { value: index }, word(each, definitions))));
  const none = choices.findIndex((each) => resolve(each, definitions).type === "null");
  if (value === null && none >= 0) select.value = none;
  const inner = h("div");
  let chosen;
  const choose = (given) => {
    chosen = control(choices[select.value], definitions, name, given);
    inner.replaceChildren(...(Number(select.value) === none ? [] : [chosen.element]));
  };
  select.addEventListener("change", () => choose());
  choose(value);
  place.append(select, inner);
  return { element: place, label: select, read: () => chosen.read() };
}

function object(schema, definitions, name, value) {
  const place = h("fieldset", { class: "control", "aria-label": name });
  const required = schema.required ?? [];
  const fields = Object.entries(schema.properties).map(([key, each]) => {
    const given = value && typeof value === "object" ? value[key] : undefined;
    const made = field(key, each, definitions, required.includes(key), given);
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
function field(key, schema, definitions, required, value) {
  const id = `field-${ids++}`;
  const place = h("div", { class: "control" });
  let made = null;
  const show = (given) => {
    made = control(schema, definitions, key, given);
    made.label?.setAttribute("id", id);
    place.replaceChildren(made.element);
  };
  const about = resolve(schema, definitions).description;
  const hint = schema.description ?? (schema.$ref ? null : about) ?? null;
  let label;
  if (required) {
    show(value);
    label = h("label", { class: "name", for: id }, key);
  } else {
    const box = h("input", { type: "checkbox" });
    box.checked = value !== undefined;
    const change = () => {
      if (box.checked) show(value);
      else [made] = [null, place.replaceChildren()];
    };
    box.addEventListener("change", change);
    label = h("label", { class: "name" }, box, ` ${key}`);
    change();
  }
  if (hint !== null) label.append(h("span", { class: "hint" }, hint));
  return { element: h("div", { class: "field" }, label, place), read: () => made?.read() };
}

function array(schema, definitions, name, value) {
  const entries = [];
  const list = h("div");
  const add = (given) => {
    if (entries.length >= Math.min(schema.maxItems ?? Infinity, MAX_ENTRIES)) return;
    const made = control(schema.items, definitions, `${name}, item ${entries.length + 1}`, given);
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
  const first = Array.isArray(value) ? value : new Array(Math.min(schema.minItems ?? 0, 10)).fill(undefined);
  first.forEach(add);
  return {
    element: h("fieldset", { class: "control", "aria-label": name }, list, more),
    read: () => `[${entries.map((made) => made.read()).join(", ")}]`,
  };
}

function tuple(schema, definitions, name, value) {
  const made = schema.prefixItems.map((each, index) =>
    control(each, definitions, `${name}, item ${index + 1}`, Array.isArray(value) ? value[index] : undefined));
  return {
    element: h("fieldset", { class: "control", "aria-label": name }, ...made.map((each) => each.element)),
    read: () => `[${made.map((each) => each.read()).join(", ")}]`,
  };
}

function dictionary(schema, definitions, name, value) {
  const values = schema.additionalProperties;
  const entries = [];
  const list = h("div");
  const add = (key, given) => {
    if (entries.length >= MAX_ENTRIES) return;
    const input = h("input", { class: "key", placeholder: "name", "aria-label": `${name}: a name` });
    input.value = key ?? "";
    const typed = values && typeof values === "object" ? values : {};
    const made = control(typed, definitions, `${name}: its value`, given);
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
  if (value && typeof value === "object") Object.entries(value).forEach(([key, each]) => add(key, each));
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
