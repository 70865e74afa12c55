// The page: chooses a route, makes requests of it, and shows what comes back.

import { control, h } from "./form.js";
import { Items } from "./items.js";
import { shown } from "./texts.js";
import { Variables, answers } from "./variables.js";

const MAX_HISTORY = 50;
const MAX_LISTED = 500;
const MAX_REMEMBERED = 20_000;
const STREAMS = ["stream", "channel"];
const SENDS = ["upload", "channel"];

const $ = (id) => document.getElementById(id);
const items = new Items($("items"), $("dropped"));

const page = {
  socket: null,
  routes: [],
  signatures: [],
  definitions: {},
  chosen: null, // a route of the description, or {manual: true}
  variables: null,
  form: null,
  itemForm: null,
  asText: false,
  running: null, // {id, kind, sent: [...]}; kept after its end
  live: false,
  auto: false,
  number: 0,
  history: [],
};

function say(message) {
  if (page.socket?.readyState === WebSocket.OPEN) page.socket.send(JSON.stringify(message));
}

function connect() {
  const url = new URL("socket", location.href);
  url.protocol = "ws:";
  page.socket = new WebSocket(url);
  page.socket.addEventListener("message", (event) => received(JSON.parse(event.data)));
  page.socket.addEventListener("close", () => {
    show("away", "weirpool ui does not run any more; start it again, and open the URL that it prints");
    if (page.live) ended({ how: "failed", message: "weirpool ui has ended" });
    setTimeout(connect, 2000);
  });
}

function show(state, problem) {
  $("state").dataset.state = state;
  put("state", state);
  complain($("problem"), problem);
  update();
}

// All texts of the server and of the user are shown by this, and by the function that makes elements.
function put(id, text) {
  $(id).textContent = shown(text);
}

// Messages.

function received(message) {
  if (message.type === "target") target(message);
  else if (message.type === "copied") copied(message);
  else if (message.type === "refused") complain($(page.live ? "item-wrong" : "wrong"), message.message);
  else if (message.id !== page.running?.id) return;
  else if (message.type === "items") arrived(message);
  else if (message.type === "end") ended(message);
}

function target(message) {
  put("url", message.url);
  document.title = shown(`${message.url} – Weirpool`);
  const away = message.state === "away" ? `${message.problem}; trying again` : "";
  const told = message.description ?? null;
  if (told !== null || page.routes.length === 0) {
    page.routes = told?.routes ?? [];
    page.definitions = told?.$defs ?? {};
    page.signatures = message.signatures;
  }
  complain($("undescribed"), message.undescribed);
  listRoutes();
  show(message.state, away);
  if (page.chosen === null && message.state === "connected") choose(page.routes[0] ?? { manual: true });
}

function arrived(message) {
  items.add(message.items);
  counts(message);
  // The next items are sent when these are shown.
  setTimeout(() => say({ op: "shown", id: message.id }), 16);
  if (page.running.fresh && items.tabular && message.items.length > 1) view(true);
  if (message.items.length) page.running.fresh = false;
  update();
}

function counts(message) {
  if (message.received !== undefined) {
    $("received").textContent = message.received.toLocaleString("en");
    $("outstanding").textContent = message.outstanding.toLocaleString("en");
    page.auto = message.auto;
    $("pause").textContent = page.auto ? "Pause" : "Keep requesting";
  }
  if (SENDS.includes(page.running.kind)) {
    $("sent").textContent = `${page.running.sent.length} sent, ${message.taken} taken by the server`;
  }
}

function ended(message) {
  page.live = false;
  $("outcome").textContent = { completed: "Completed", canceled: "Canceled", failed: "Failed" }[message.how];
  $("outcome").className = message.how === "failed" ? "bad" : "";
  const took = message.seconds === undefined ? "" : `, ${duration(message.seconds)}`;
  put("counts", `${page.running.route}${took}`);
  counts(message);
  const data = message.data ? `\n${message.data.text ?? message.data.hex}` : "";
  complain($("failure"), message.message ? `${message.message}${data}` : "");
  update();
}

function duration(seconds) {
  return seconds < 1 ? `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms` : `${seconds.toFixed(1)} s`;
}

function complain(place, message) {
  place.textContent = shown(message);
  place.hidden = !message;
}

// Routes.

function listRoutes() {
  const wanted = $("filter").value.toLowerCase();
  const found = page.routes.filter((each) => each.route.toLowerCase().includes(wanted));
  const more = found.length > MAX_LISTED
    ? [h("li", { class: "quiet" }, `${(found.length - MAX_LISTED).toLocaleString("en")} more: write a part of a name`)]
    : [];
  $("routes").replaceChildren(...found.slice(0, MAX_LISTED).map((each) => {
    const button = h("button", { type: "button", title: each.description || null, onclick: () => choose(each) },
      h("span", {}, each.route || "(empty)"), h("span", { class: "kind" }, each.kind));
    button.setAttribute("aria-current", String(same(each, page.chosen)));
    return h("li", {}, button);
  }), ...more);
}

function same(one, other) {
  return other !== null && !other.manual && one.route === other.route && one.kind === other.kind;
}

function choose(route, data) {
  page.chosen = route;
  $("ask").hidden = false;
  $("manual").hidden = !route.manual;
  page.variables = new Variables(route.manual ? "" : route.route);
  $("variables").hidden = page.variables.labels.length === 0;
  $("variables").replaceChildren(...page.variables.labels);
  put("title", route.manual ? "Other route" : route.route || "(empty)");
  $("kind").hidden = Boolean(route.manual);
  put("kind", route.kind ?? "");
  const at = page.routes.indexOf(route);
  $("signature").hidden = at < 0;
  put("signature", page.signatures[at] ?? "");
  put("about", route.manual ? "The server need not describe this route." : route.description ?? "");
  for (const id of ["wrong", "copied"]) complain($(id), "");
  const typed = Boolean(route.request);
  $("tabs").hidden = !typed;
  page.form = typed ? control(route.request, page.definitions, "request") : null;
  $("fields").replaceChildren(...(page.form ? [page.form.element] : []));
  page.itemForm = route.items ? control(route.items, page.definitions, "item") : null;
  $("item-fields").replaceChildren(...(page.itemForm ? [page.itemForm.element] : []));
  $("text").value = "";
  $("item-text").value = "";
  write(!typed);
  if (data !== undefined) fill(data);
  listRoutes();
  update();
}

function fill(data) {
  if (page.form !== null) {
    try {
      // Digits that JavaScript cannot keep stay in the text.
      const value = JSON.parse(data);
      if (JSON.stringify(value).length === data.replace(/\s/g, "").length || !/\d{16}/.test(data)) {
        page.form = control(page.chosen.request, page.definitions, "request", value);
        $("fields").replaceChildren(page.form.element);
        write(false);
        return;
      }
    } catch {
      // It is shown as text.
    }
  }
  $("text").value = data;
  write(true);
}

function write(asText) {
  page.asText = asText;
  $("as-form").setAttribute("aria-pressed", String(!asText));
  $("as-text").setAttribute("aria-pressed", String(asText));
  $("fields").hidden = asText;
  $("text-label").hidden = !asText;
  $("item-fields").hidden = page.itemForm === null;
  $("item-text-label").hidden = page.itemForm !== null;
}

function request() {
  const { chosen } = page;
  const kind = chosen.manual ? $("manual-kind").value : chosen.kind;
  const route = chosen.manual ? $("manual-route").value : page.variables.route();
  return { kind, route, data: page.asText ? $("text").value : page.form?.read() ?? "" };
}

// Requests.

function send() {
  let wanted;
  try {
    wanted = request();
  } catch (error) {
    complain($("wrong"), error.message);
    return;
  }
  complain($("wrong"), "");
  page.number += 1;
  const id = `r${page.number}`;
  page.running = { id, ...wanted, sent: [], fresh: true };
  page.live = true;
  page.auto = $("auto").checked;
  items.clear();
  view(false);
  complain($("failure"), "");
  complain($("item-wrong"), "");
  $("outcome").textContent = { fire: "Sending" }[wanted.kind] ?? (STREAMS.includes(wanted.kind) ? "Streaming" : "Waiting");
  $("outcome").className = "";
  put("counts", wanted.route);
  $("sent").textContent = "";
  const demand = amount("demand");
  counts({ received: 0, outstanding: demand, auto: page.auto, taken: 0 });
  say({ op: "start", id, ...wanted, demand, auto: page.auto });
  remember(wanted);
  update();
  if (SENDS.includes(wanted.kind)) document.querySelector("#sending input, #sending textarea")?.focus();
}

function amount(id) {
  const found = Math.trunc(Number($(id).value));
  return Math.min(Math.max(Number.isFinite(found) ? found : 1, 1), 10_000);
}

function sendItem() {
  try {
    const data = page.itemForm === null ? $("item-text").value : page.itemForm.read();
    complain($("item-wrong"), "");
    page.running.sent.push(data.length > MAX_REMEMBERED ? null : data);
    if (page.running.sent.length > 1000) page.running.sent[page.running.sent.length - 1001] = null;
    say({ op: "item", id: page.running.id, data });
    if (page.itemForm === null) $("item-text").value = "";
    update();
  } catch (error) {
    complain($("item-wrong"), error.message);
  }
}

function remember(wanted) {
  if (wanted.data.length > MAX_REMEMBERED) return;
  page.history = [wanted, ...page.history.filter((each) => JSON.stringify(each) !== JSON.stringify(wanted))];
  page.history.length = Math.min(page.history.length, MAX_HISTORY);
  $("past").hidden = false;
  $("history").replaceChildren(...page.history.map((each) =>
    h("li", {}, h("button", { type: "button", title: each.data, onclick: () => recall(each) },
      h("span", {}, `${each.route} ${each.data.slice(0, 60)}`), h("span", { class: "kind" }, each.kind)))));
}

function recall(past) {
  const matching = page.routes.filter((each) => each.kind === past.kind && answers(each.route, past.route));
  const known = matching.find((each) => each.route === past.route) ?? matching[0];
  if (known === undefined) {
    choose({ manual: true });
    $("manual-kind").value = past.kind;
    $("manual-route").value = past.route;
  } else {
    choose(known);
    page.variables.fill(past.route);
  }
  fill(past.data);
  update();
}

// Copies.

let copying = "";

function copy(what) {
  try {
    const wanted = request();
    const sent = page.running?.route === wanted.route ? page.running.sent.filter((each) => each !== null) : [];
    copying = what;
    say({ op: "copy", ...wanted, items: SENDS.includes(wanted.kind) ? sent : [] });
  } catch (error) {
    complain($("wrong"), error.message);
  }
}

async function copied(message) {
  const text = message[copying];
  complain($("copied"), "");
  complain($("wrong"), text === undefined ? message.refused : "");
  if (text === undefined) return;
  try {
    await navigator.clipboard.writeText(text);
    $("copied").textContent = "copied";
  } catch {
    $("copied").textContent = "the browser does not allow copying; mark the text:";
  }
  $("copied").hidden = false;
  $("copied").append(h("pre", { tabindex: 0 }, text));
}

// Controls.

function view(table) {
  items.show(table);
  $("as-table").setAttribute("aria-pressed", String(table));
  $("as-json").setAttribute("aria-pressed", String(!table));
}

function update() {
  const kind = page.chosen?.manual ? $("manual-kind").value : page.chosen?.kind;
  const connected = $("state").dataset.state === "connected";
  const streams = STREAMS.includes(kind);
  $("send").disabled = !connected || page.live;
  $("demand-label").hidden = $("auto-label").hidden = !streams;
  $("answer").hidden = page.running === null;
  $("flow").hidden = !(page.live && page.running.kind !== "fire") && !STREAMS.includes(page.running?.kind);
  const running = page.live && STREAMS.includes(page.running.kind);
  document.querySelector("#flow dl").hidden = !STREAMS.includes(page.running?.kind);
  // What was requested and will not arrive means nothing.
  for (const id of ["more", "count", "pause", "outstanding-label"]) $(id).hidden = !running;
  $("cancel").hidden = !page.live;
  $("sending").hidden = !(page.live && SENDS.includes(page.running.kind));
  $("views").hidden = !items.tabular;
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!$("send").disabled) send();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  if ($("sending").contains(document.activeElement)) sendItem();
  else if (!$("ask").hidden && !$("send").disabled) send();
});
$("filter").addEventListener("input", listRoutes);
$("reload").addEventListener("click", () => say({ op: "describe" }));
$("by-hand").addEventListener("click", () => {
  choose({ manual: true });
  $("manual-route").focus();
});
$("manual-kind").addEventListener("change", update);
$("as-form").addEventListener("click", () => {
  const data = $("text").value.trim();
  if (data) fill(data);
  else write(false);
});
$("as-text").addEventListener("click", () => {
  try {
    $("text").value = page.form?.read() ?? $("text").value;
  } catch {
    // An incomplete form leaves the text as it is.
  }
  write(true);
  $("text").focus();
});
$("send-item").addEventListener("click", sendItem);
$("complete").addEventListener("click", () => {
  say({ op: "complete", id: page.running.id });
  $("sending").hidden = true;
});
$("more").addEventListener("click", () => say({ op: "request", id: page.running.id, demand: amount("count") }));
$("pause").addEventListener("click", () => {
  page.auto = !page.auto;
  $("pause").textContent = page.auto ? "Pause" : "Keep requesting";
  say({ op: "auto", id: page.running.id, auto: page.auto });
});
$("cancel").addEventListener("click", () => say({ op: "cancel", id: page.running.id }));
$("as-table").addEventListener("click", () => view(true));
$("as-json").addEventListener("click", () => view(false));
$("copy-command").addEventListener("click", () => copy("command"));
$("copy-python").addEventListener("click", () => copy("python"));

connect();
