// The fields for the variables of a route, such as {symbol} in quotes.{symbol}.

import { h } from "./form.js";

export class Variables {
  constructor(pattern) {
    // Each segment is a text, or the field of a variable.
    this.segments = pattern.split(".").map((each) => isVariable(each) ? field(each.slice(1, -1)) : each);
    this.labels = this.segments.filter((each) => typeof each !== "string")
      .map((each) => h("label", { class: "grow" }, each.name, each));
  }

  // The route with what is written in the fields.
  route() {
    return this.segments.map((each) => typeof each === "string" ? each : written(each)).join(".");
  }

  // Writes the values that make a route into the fields.
  fill(route) {
    route.split(".").forEach((value, at) => {
      if (typeof this.segments[at] !== "string") this.segments[at].value = value.replaceAll("%2E", ".");
    });
  }
}

export function answers(pattern, route) {
  const values = route.split(".");
  const segments = pattern.split(".");
  return segments.length === values.length
    && segments.every((each, at) => each === values[at] || (isVariable(each) && values[at] !== ""));
}

function isVariable(segment) {
  return segment.startsWith("{");
}

function field(name) {
  return h("input", { name, autocomplete: "off", spellcheck: "false" });
}

function written(input) {
  if (input.value === "") {
    input.focus();
    throw new Error(`${input.name}: write a value; it is a part of the route`);
  }
  // A variable stands for one segment of the route, and a dot would end it.
  return input.value.replaceAll(".", "%2E");
}
