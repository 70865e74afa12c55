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
      if (typeof this.segments[at] !== "string") this.segments[at].value = value;
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
  // A variable stands for one segment of the route.
  if (input.value === "" || input.value.includes(".")) {
    input.focus();
    throw new Error(`${input.name}: write a value without dots; it is a part of the route`);
  }
  return input.value;
}
