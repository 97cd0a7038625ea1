// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// The page: what is wrong, the agents, and up to half an hour of their past. It asks for /state.json, and keeps
// the past itself. Names are only ever set as text.

import { Heat, Lines, endAt, recolor } from "./charts.js";
import { age, bare, clock, duration, memory, percent, rate, throughput } from "./units.js";

const $ = (id) => document.getElementById(id);

const alarm = ["series1", "series2", "series3", "series4", "series5", "series6"]; // the first two look like alarms
const calm = ["series5", "series4", "series3", "series6", "muted", "faint"]; // of agents whose problem isn't that of the chart
const mostRows = 12;
// The findings that give an agent an alarm color in a chart, and in the bar of the speed.
const ofSpeed = ["straggler", "slower", "job_slower", "post_bound"];
const ofErrors = ["failing", "some_fail"], ofRings = ["ring_full", "ring_nearly_full", "events_lost", "no_consumer"];

const every = 2000, pointEvery = 6000, history = 30 * 60 * 1000; // ms

let frame = null; // the newest state
let details = null; // of the agent whose page is shown
let points = []; // the past, oldest first
let allRows = false;

// el creates an element. Strings in children become text.
function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) if (v !== undefined) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

// set changes an element's text only if it differs, so that a selection survives.
function set(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

const linkTo = (row) => "#/agent/" + encodeURIComponent(row.id);
const many = (n, one, more) => `${n.toLocaleString("en-US")} ${n === 1 ? one : more}`;
// A problem that existed when the watch began may be older.
const since = (f) => f.since ? `since ${clock(f.since, true)}${f.since - frame.start < 10_000 ? " or earlier" : ""}` : "";
const isProblem = (f) => f.severity !== "info";
const agentsWith = (kinds) => new Set(frame.findings.filter((f) => isProblem(f) && kinds.includes(f.kind)).flatMap((f) => f.agents));
const rowOf = (id) => frame.rows.find((r) => r.id === id);

// --- the verdict

function showVerdict() {
  const problems = frame.findings.filter(isProblem), watched = (frame.at - frame.start) / 1000;
  const lost = frame.notes.find((n) => n.startsWith("no data since"))?.replace(/: .*/, "");
  const running = lost ? 0 : frame.rows.filter((r) => r.alive !== "exited").length;
  let headline, more;
  if (problems.length) {
    headline = problems[0].what;
    more = problems.length > 1 ? `and ${many(problems.length - 1, "more problem", "more problems")}` : "";
  } else if (!frame.at || lost) {
    headline = lost ? "N" + lost.slice(1) : frame.notes.length ? "No data" : "No data yet";
  } else if (!running) {
    headline = "No agent is running";
    more = "the page shows agents as soon as they start";
  } else {
    headline = frame.headline;
  }
  set($("headline"), headline);
  const length = !frame.at ? "" : watched < 60 ? `watched for ${age(watched)}; some findings take a minute or two` : `watched for ${age(watched)}`;
  const lead = problems.length ? since(problems[0]) : "";
  set($("subline"), [lead, more, frame.at && many(frame.rows.length, "agent", "agents"), length, ...frame.notes].filter(Boolean).join(" · "));
  document.title = (problems.length ? `(${problems.length}) ` : "") + "nixlring " + frame.name;
  frame.checks.forEach((check, i) => {
    const tile = $("tiles").children[i] ?? $("tiles").appendChild(el("a", { class: "tile" }, el("div", { class: "label" }), el("div", { class: "state" }), el("div", { class: "detail" })));
    const found = frame.findings.filter((f) => check.kinds.includes(f.kind)), worst = found[0];
    const [label, state, detail] = tile.children;
    tile.className = "tile " + (worst ? worst.severity : check.well && !lost ? "ok" : "none");
    set(label, check.check);
    set(state, worst ? worst.who || worst.short : "");
    set(detail, worst ? [worst.who && worst.short, found.length > 1 && `and ${found.length - 1} more`].filter(Boolean).join(", ") : lost ? "" : check.what);
    tile.title = worst ? worst.what : check.what;
    const row = worst?.agents.length === 1 ? rowOf(worst.agents[0]) : null;
    if (row) tile.href = linkTo(row); else tile.removeAttribute("href");
  });
}

// firstOfKind returns the worst finding of each kind, with others of the same kind.
function firstOfKind(list) {
  const kinds = new Map();
  for (const f of list) kinds.set(f.kind, [...(kinds.get(f.kind) ?? []), f]);
  return [...kinds.values()].map(([first, ...others]) => {
    const names = others.slice(0, 6).map((f) => f.who).filter(Boolean), more = others.length - names.length;
    return { ...first, also: others.slice(0, names.length), more };
  });
}

// showFindings shows findings in full. The first one is open. It has no title if that is the headline.
function showFindings(parent, list, headline) {
  const old = new Map([...parent.children].map((e) => [e.dataset.key, e]));
  const keep = list.map((f, i) => {
    const key = f.kind;
    let e = old.get(key);
    if (!e) {
      e = el("details", { "data-key": key },
        el("summary", {}, el("span", { class: "mark" }), el("span", { class: "what" }), el("span", { class: "since" })),
        el("ul"), el("p", { class: "not" }), el("p", { class: "next" }), el("p", { class: "not" }));
      e.open = i === 0;
    }
    e.className = "finding " + f.severity + (headline && i === 0 && isProblem(f) ? " lead" : "");
    if (i === 0 && headline) e.open = true;
    const [summary, evidence, not, next, also] = e.children;
    set(summary.children[1], f.what);
    set(summary.children[2], since(f));
    while (evidence.children.length > f.evidence.length) evidence.lastChild.remove();
    f.evidence.forEach((text, n) => set(evidence.children[n] ?? evidence.appendChild(el("li")), text));
    set(not, f.not);
    set(next, "→ " + f.next);
    const others = f.also.map((o) => ({ name: o.who, row: o.agents.length === 1 && rowOf(o.agents[0]) })), key2 = JSON.stringify([others.map((o) => o.name), f.more]);
    if (also.dataset.key !== key2) {
      also.dataset.key = key2;
      also.replaceChildren(others.length ? "Also: " : "", ...others.flatMap((o, n) => [n ? ", " : "", o.row ? el("a", { href: linkTo(o.row) }, o.name) : o.name]),
        f.more > 0 ? ` and ${f.more} more` : "");
    }
    also.hidden = !others.length;
    return e;
  });
  if (keep.length !== parent.children.length || keep.some((e, i) => parent.children[i] !== e)) parent.replaceChildren(...keep);
}

// --- the table

// columns: title, class, value as text, value to sort by. Rows come sorted by problem, which the notes show.
const columns = [
  ["Agent", "name", (r) => r.name, (r) => r.name],
  ["Speed", "num", (r) => throughput(r.speed), (r) => r.speed],
  ["Out", "num medium", (r) => throughput(r.out), (r) => r.out],
  ["In", "num medium", (r) => throughput(r.in), (r) => r.in],
  ["Transfers/s", "num medium", (r) => rate(r.transfers), (r) => r.transfers],
  ["p50", "num medium", (r) => duration(r.p50), (r) => r.p50],
  ["p99", "num medium", (r) => duration(r.p99), (r) => r.p99],
  ["Errors/s", "num", (r) => rate(r.errors), (r) => r.errors],
  ["Ring", "num wide", (r) => r.store ? "–" : percent(r.fill), (r) => r.store ? null : r.fill],
  ["Last event", "num wide", (r) => age(r.age), (r) => r.age],
  ["Notes", "notes", (r) => r.problems.join(", "), null],
];
const byProblem = columns.length - 1;
const order = { column: byProblem, up: false };
const help = {
  Speed: "Bytes of the transfers divided by the sum of their times; idle time doesn't count",
  Ring: "Highest fill of the ring between two samples",
};

function head(table, titles) {
  table.tHead.replaceChildren(el("tr", {}, ...titles.map(([title, kind]) => el("th", { class: kind, title: help[title] }, title))));
}

// sortBy sorts by a column: names from a to z, numbers from the highest, and the other way round the next time.
function sortBy(column) {
  const again = order.column === column;
  Object.assign(order, { column, up: again ? !order.up : column === 0 });
  showOrder();
  showTable();
}

function showOrder() {
  [...$("agents").tHead.rows[0].cells].forEach((th, i) => {
    if (i !== order.column) th.removeAttribute("aria-sort");
    else th.setAttribute("aria-sort", i === byProblem ? "other" : order.up ? "ascending" : "descending");
  });
}

// sorted returns rows in the chosen order. What has no value is last.
function sorted(rows) {
  const value = columns[order.column][3], sign = order.up ? 1 : -1;
  if (!value) return rows;
  const compare = (a, b) => typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
  return rows.toSorted((a, b) => (value(a) === null) - (value(b) === null) || sign * compare(value(a), value(b)));
}

function showTable() {
  const body = $("agents").tBodies[0], filter = $("filter").value.toLowerCase();
  const matching = sorted(frame.rows.filter((r) => r.name.toLowerCase().includes(filter)));
  const shown = allRows ? matching : matching.slice(0, mostRows);
  const old = new Map([...body.children].map((e) => [e.dataset.id, e]));
  const slow = agentsWith(ofSpeed);
  const fastest = Math.max(...frame.rows.map((r) => r.speed ?? 0));
  const rows = shown.map((r) => {
    const tr = old.get(String(r.id)) ?? el("tr", { "data-id": r.id }, ...columns.map(([title, kind]) => {
      const td = el("td", { class: kind });
      if (title === "Agent") td.append(el("a"));
      else if (title === "Speed" || title === "Ring") td.append(el("span", { class: "meter " + title.toLowerCase() }, el("i")), el("span"));
      return td;
    }));
    tr.className = `${r.severity} ${slow.has(r.id) ? "slow" : ""}`;
    columns.forEach(([title, , value], i) => set(tr.cells[i].lastElementChild ?? tr.cells[i], value(r)));
    tr.cells[0].firstChild.href = linkTo(r);
    tr.cells[0].title = r.name;
    tr.querySelector(".speed i").style.width = 100 * (r.speed ?? 0) / (fastest || 1) + "%";
    tr.querySelector(".ring i").style.width = 100 * r.fill + "%";
    return tr;
  });
  body.replaceChildren(...rows);
  const flagged = frame.rows.filter((r) => r.severity).length;
  set($("counts"), flagged ? `${flagged} of ${frame.rows.length} with problems${order.column === byProblem ? ", shown first" : ""}` : many(frame.rows.length, "agent", "agents"));
  $("filter").hidden = frame.rows.length <= mostRows;
  $("more").hidden = matching.length <= mostRows;
  set($("more"), allRows ? "Show fewer" : `Show all ${matching.length}`);
}

// --- charts

const fleet = {}, one = {}; // charts of the two views
const errors = (v) => v === null ? "–" : rate(v);

function makeCharts() {
  Object.assign(fleet, {
    speed: new Lines($("charts"), "Speed by agent", (v) => bare(throughput(v)), { log: true }),
    times: new Heat($("charts"), "Transfer times", (v) => bare(duration(v)), 10),
    sizes: new Heat($("charts"), "Transfer sizes", (v) => bare(memory(v)), 2),
    total: new Lines($("charts"), "Throughput, in and out", (v) => bare(throughput(v))),
    errors: new Lines($("charts"), "Errors per second", errors, { least: 1 }),
    fill: new Lines($("charts"), "Fill of the rings", percent, { max: 1 }),
  });
  Object.assign(one, {
    speed: new Lines($("agentCharts"), "Speed", (v) => bare(throughput(v)), { log: true }),
    quantiles: new Lines($("agentCharts"), "Transfer times: median and p99", (v) => bare(duration(v)), { log: true }),
    times: new Heat($("agentCharts"), "Transfer times", (v) => bare(duration(v)), 10),
    total: new Lines($("agentCharts"), "Throughput, in and out", (v) => bare(throughput(v))),
    errors: new Lines($("agentCharts"), "Errors per second", errors, { least: 1 }),
    fill: new Lines($("agentCharts"), "Fill of the ring", percent, { max: 1 }),
  });
}


// positive replaces what a logarithmic axis can't show.
const positive = (v) => v > 0 ? v : null;

function median(values) {
  const sorted = values.filter((v) => v > 0).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(sorted.length / 2)] : null;
}

// past returns a value of an agent at each point.
const past = (id, value) => points.map((p) => p.agents.has(id) ? value(p.agents.get(id)) : null);
const total = (r) => r.out + r.in;
const speed = (r) => positive(r.speed);

function showFleetCharts() {
  const times = points.map((p) => p.at / 1000);
  // The agents with problems have a color, or else all agents if they are few.
  let flagged = frame.rows.filter((r) => r.severity);
  if (!flagged.length || flagged.length > alarm.length) flagged = frame.rows.length <= alarm.length ? frame.rows : flagged.slice(0, 3);
  const colors = new Map(flagged.map((r, i) => [r.id, i]));
  const rows = frame.rows.toSorted((a, b) => colors.has(a.id) - colors.has(b.id) || (a.id < b.id ? -1 : 1));
  const lines = (value, kinds) => {
    const wrong = agentsWith(kinds);
    return rows.map((r) => ({ name: r.name, color: (wrong.has(r.id) ? alarm : calm)[colors.get(r.id)], values: past(r.id, value) }));
  };
  fleet.speed.update(times, lines(speed, ofSpeed));
  fleet.errors.update(times, lines((r) => r.errors, ofErrors));
  fleet.fill.update(times, lines((r) => r.fill, ofRings));
  fleet.total.update(times, [{ name: "all agents", color: "accent", values: points.map((p) => p.agents.values().reduce((sum, r) => sum + total(r), 0)) }]);
  fleet.times.update(times, frame.times.bounds, points.map((p) => p.times));
  fleet.sizes.update(times, frame.sizes.bounds, points.map((p) => p.sizes));
}

// --- the page of an agent

const slowColumns = [["Time", ""], ["Direction", "medium"], ["Size", "num"], ["Took", "num"], ["Posting", "num medium"], ["Throughput", "num"]];

function showAgent(row) {
  set($("name"), row.name);
  const facts = [row.alive, row.store ? "prometheus_mp store" : `ring of ${row.capacity.toLocaleString("en-US")} slots, layout ${row.layout}`,
    row.consumer && "consumer: " + row.consumer, row.memory !== null && memory(row.memory) + " registered", `last event ${age(row.age)} ago`];
  set($("facts"), facts.filter(Boolean).join(" · "));
  showFindings($("about"), firstOfKind(frame.findings.filter((f) => f.agents.includes(row.id))));
}

function showAgentCharts(row) {
  const times = points.map((p) => p.at / 1000);
  const line = (name, value, more) => ({ name, color: "accent", values: past(row.id, value), ...more });
  one.speed.update(times, [line(row.name, speed),
    { name: "median of all agents", color: "muted", dash: [4, 4], values: points.map((p) => median([...p.agents.values()].map((r) => r.speed))) }]);
  one.quantiles.update(times, [line("median", (r) => positive(r.p50)), line("99th percentile", (r) => positive(r.p99), { color: "series4" })]);
  one.total.update(times, [line(row.name, total)]);
  one.errors.update(times, [line(row.name, (r) => r.errors)]);
  one.fill.update(times, [line(row.name, (r) => r.fill)]);
  one.times.update(times, frame.times.bounds, past(row.id, (r) => counts(r)).map((c) => c ?? []));
}

// counts returns the histogram of an agent's transfer times.
function counts(row) {
  const all = new Array(frame.times.counts.length).fill(0), [first, ...list] = row.times;
  list.forEach((n, i) => { all[first + i] = n; });
  return all;
}

// showDetails shows what only the page of an agent has.
function showDetails() {
  set($("identity"), details.where.join(" · "));
  $("slowest").tBodies[0].replaceChildren(...details.slowest.map((t) => el("tr", {}, ...[
    clock(Date.parse(t.time), true), t.receive ? "in" : "out", memory(t.bytes), duration(t.transfer_seconds), duration(t.post_seconds),
    throughput(t.bytes / Math.max(t.transfer_seconds, 1e-6)),
  ].map((text, i) => el("td", { class: slowColumns[i][1] }, text)))));
  if (!details.slowest.length) $("slowest").tBodies[0].append(el("tr", {}, el("td", { colspan: slowColumns.length }, "none")));
}

// current returns the row of the agent whose page is shown.
const current = () => frame?.rows.find((r) => r.id === chosen());

// chosen returns the ID of that agent in the address, or "".
function chosen() {
  const [, id] = location.hash.match(/^#\/agent\/(.+)$/) ?? [];
  try {
    return id ? decodeURIComponent(id) : "";
  } catch {
    return ""; // the address isn't encoded correctly
  }
}

// --- updates

function show() {
  if (!frame) return;
  const row = current();
  $("fleet").hidden = Boolean(row);
  $("charts").hidden = !frame.at;
  $("agent").hidden = !row;
  if (row) {
    showAgent(row);
    if (details?.id === row.id) showDetails();
    return;
  }
  showVerdict();
  showFindings($("findings"), firstOfKind(frame.findings), true);
  showTable();
}

function showCharts() {
  if (!frame) return;
  const row = current();
  if (row) showAgentCharts(row); else showFleetCharts();
}

// add adds the newest state to the past.
function add() {
  if (points.length && frame.at - points.at(-1).at < pointEvery || frame.at === frame.start) return;
  points.push({ at: frame.at, agents: new Map(frame.rows.map((r) => [r.id, r])), times: frame.times.counts, sizes: frame.sizes.counts });
  while (frame.at - points[0].at > history) points.shift();
  return true;
}

function say(text, lost) {
  $("live").className = lost ? "lost" : "";
  set($("live"), text);
}

// follow asks for the newest state, again and again.
async function follow() {
  try {
    const response = await fetch("state.json?agent=" + encodeURIComponent(chosen()));
    const answer = await response.json(), before = frame?.at;
    details = answer.agent;
    frame = answer.state;
    for (const f of frame.findings) {
      f.who = f.agents.length > 1 ? `${f.agents.length} agents` : f.agents[0]?.name ?? "";
      f.since = Date.parse(f.since);
      f.agents = f.agents.map((a) => a.id);
    }
    set($("where"), frame.name);
    const note = frame.notes.find((n) => n.startsWith("no data since"));
    say(note ? note.replace(/: .*/, "") : frame.at ? "live, " + clock(frame.at, true) : "no data yet", note || !frame.at && frame.notes.length);
    show();
    endAt(frame.at / 1000);
    if (frame.at && frame.at !== before && add() || before === undefined) showCharts();
  } catch {
    say("disconnected", true);
  }
  setTimeout(follow, every);
}

function theme() {
  const media = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
  const stored = { get: () => { try { return localStorage.theme; } catch { return ""; } }, set: (v) => { try { localStorage.theme = v; } catch { /* private mode */ } } };
  root.className = stored.get() ?? "";
  $("theme").addEventListener("click", () => {
    const dark = root.className ? root.className === "dark" : media.matches;
    root.className = dark ? "light" : "dark";
    stored.set(root.className);
    recolor();
  });
  media.addEventListener("change", recolor);
}

theme();
makeCharts();
head($("agents"), columns);
for (const [i, th] of [...$("agents").tHead.rows[0].cells].entries()) {
  const button = el("button", { type: "button" }, th.textContent);
  button.addEventListener("click", () => sortBy(i));
  th.replaceChildren(button);
}
showOrder();
head($("slowest"), slowColumns);
$("filter").addEventListener("input", showTable);
$("more").addEventListener("click", () => { allRows = !allRows; showTable(); });
// Enter opens the first row, unless something else has the focus.
addEventListener("keydown", (e) => { if (e.key === "Enter" && e.target === document.body && !$("fleet").hidden) $("agents").tBodies[0].querySelector("a")?.click(); });
addEventListener("hashchange", () => { scrollTo(0, 0); show(); showCharts(); });
follow();
