// The page: the view that its address names, the daemon's answers each second, and errors.

import { drawChart } from "./chart.js";
import { add, bytesText, durationText, el, shortText, show, showAll, showFigure, valueText, visible } from "./dom.js";
import { drawHeatmap } from "./heatmap.js";
import { hasWindow, increaseOf } from "./promql.js";
import { bucketAfter, bucketStart, endOf, firstBucket, pastsOf, rangeBetween, RANGES } from "./range.js";
import { drawRejects } from "./rejects.js";
import { drawBuckets, drawClasses, drawTop } from "./tables.js";

const POLL_MS = 1000; // interval of asking for status and the last two buckets, unless a stream brings both
const TYPING_MS = 200; // pause in typing before values are suggested
const STREAM_MS = 3000; // a stream that is silent for longer is no longer relied on
const SLOW_MS = 2000; // a notice appears if an answer takes longer
const TIMEOUT_MS = 10000;
const REFUSED_MS = 300000; // a refused part of the view is asked again after this; another view at once
const MEASURES = 3; // number of measures shown besides the chosen one
const LINES = ["p50", "p95", "p99"]; // quantiles of a histogram that are drawn together
const HIDDEN = /^p9[05]\(/, QUANTILE = /^p\d+\(/; // quantiles that need no card, beside another measure and beside lines

// filters: [dimension, value], and "where" if the value has patterns; range: a name in RANGES, or "FROM/TO" in ISO 8601; compare: with yesterday and last week
const view = { report: null, measure: "", filters: [], range: "hour", compare: false };
const buckets = new Map(); // start in ms -> value; null: absent
const quantiles = new Map(); // start in ms -> the quantiles that are drawn with a chosen one, in the order of LINES
let pasts = []; // the earlier times that the range is compared with, as drawChart() takes them
let reports = [];
let skewMs = 0; // the daemon's clock minus the browser's
let wholeAt = -Infinity, restAt = -Infinity; // times at which all buckets, and the other parts, were last asked for
let heardAt = -Infinity; // time of the stream's last event, by performance.now()
let stream = null;
let typing = 0; // the timer that ends the pause in typing
let askedAt = null; // start of the refresh under way; null: none is
let lostAt = null; // time at which the daemon stopped answering; null: it answers
let notReady = ""; // the daemon's reason why it is not ready; empty: it is ready
let unknown = ""; // words of the address that say nothing to the page; empty: there are none
let notes = []; // what the answer for the range says of itself
let status = null; // the daemon's newest status
const refused = new Map(); // part of the view -> { text, at }: reason and time of the refusal

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function ask(path, parameters = [], api = "api/v1") {
  const abort = AbortSignal.timeout(TIMEOUT_MS);
  const reply = await fetch(`${api}/${path}?${new URLSearchParams(parameters)}`, { signal: abort, cache: "no-store" });
  const body = await reply.json();
  if (!reply.ok) throw new Refused(reply.status, body.error);
  return body;
}

// Null: it is no range.
function rangeOf(text) {
  if (Object.hasOwn(RANGES, text)) return RANGES[text];
  const [from, to] = text.split("/");
  return rangeBetween(Date.parse(from), Date.parse(to));
}

const range = () => rangeOf(view.range);
const isFixed = () => range().end !== undefined; // it does not move with the time
const nowMs = () => Date.now() + skewMs;
const rows = () => [...buckets].sort((a, b) => a[0] - b[0]);
const filterWords = (filters) => filters.map(([dimension, value, word = "filter"]) => [word, `${dimension}=${value}`]);

const cardRange = () => (isFixed() ? "range" : range().title);

function span() {
  const from = ["from", String(firstBucket(range(), nowMs()))];
  return isFixed() ? [from, ["to", String(range().end)]] : [from];
}

function question(report, measure, filters) {
  return [["report", report.name], ["measure", measure], ...filterWords(filters)];
}

// Do the buckets add up to the range?
function addsUp(report, measure) {
  return /^(count$|sum\()/.test(report.expressions[report.measures.indexOf(measure)]);
}

// The measure to ask rows for: of a quantile that may be chosen, its histogram, which stands for all of these.
function rowsMeasure() {
  return QUANTILE.test(view.measure) ? view.measure.replace(QUANTILE, "").slice(0, -1) : view.measure;
}

const isQuantile = () => rowsMeasure() !== view.measure;

function figureText(measure, value) {
  return view.report.expressions[view.report.measures.indexOf(measure)] === "sum(bytes)" ? bytesText(value) : shortText(value);
}

// ---- the view: it is in the address, so that bookmarks and the back button work

function address(change) {
  const v = { ...view, ...change };
  if (change.report && !v.report.measures.includes(v.measure)) v.measure = v.report.measures[0];
  return `?${new URLSearchParams([...question(v.report, v.measure, v.filters), ["range", v.range], ...(v.compare ? [["compare", "yes"]] : [])])}`;
}

function fillSelect(select, names, chosen) {
  select.replaceChildren(...names.map((n) => new Option(n, n, false, n === chosen)));
}

const isFilter = (text) => text.includes("=") && view.report.dimensions.includes(text.split("=", 1)[0]);
const WORDS = {
  report: (name) => reports.some((r) => r.name === name),
  measure: (name) => view.report.measures.includes(name),
  filter: isFilter,
  where: isFilter,
  range: (text) => rangeOf(text) !== null,
  compare: (text) => text === "yes",
};

function takeAddress() {
  const wanted = new URLSearchParams(location.search);
  const known = (word) => wanted.getAll(word).filter(WORDS[word]);
  view.report = reports.find((r) => r.name === known("report")[0]) ?? reports[0];
  view.measure = known("measure")[0] ?? view.report.measures[0];
  const filters = ["where", "filter"].flatMap((word) => known(word).map((f) => [f.split("=", 1)[0], f.slice(f.indexOf("=") + 1), word]));
  view.filters = [...new Map(filters.map((f) => [f[0], f])).values()];
  view.range = known("range")[0] ?? "hour";
  view.compare = known("compare").length > 0;
  const others = [...wanted].filter(([word, text]) => !(Object.hasOwn(WORDS, word) && WORDS[word](text)));
  unknown = others.map(([word, text]) => `${word}=${text}`).join(", ");
  showView();
  forget();
  listen();
}

function go(change) {
  const to = address(change);
  if (to !== location.search) history.pushState(null, "", to);
  takeAddress();
  refresh();
}

function showView() {
  fillSelect(el("report"), reports.map((r) => r.name), view.report.name);
  fillSelect(el("measure"), view.report.measures, view.measure);
  showAll(".measure", view.measure);
  showAll(".range", range().title);
  showAll(".card-range", cardRange());
  showAll("#step, #bucket", range().step);
  el("now-card").hidden = isFixed();
  if (!isFixed()) show(el("now-title"), range().now);
  const comparable = pastsOf(range(), nowMs());
  el("compare").checked = view.compare;
  el("compare-label").hidden = comparable.length === 0;
  el("compare-with").replaceChildren();
  comparable.forEach(({ name, days }, i) => add(el("compare-with"), "span", `${i > 0 ? " and " : ""}${name}`, `past-${days}`));
  showPick();
  document.title = `${view.report.name}, ${range().title} – tallyd`;
  el("ranges").replaceChildren();
  for (const [name, r] of Object.entries(RANGES)) {
    const link = add(el("ranges"), "a", r.link);
    link.href = address({ range: name });
    if (name === view.range) link.setAttribute("aria-current", "page");
  }
  for (const card of document.querySelectorAll("#figures .other")) card.remove();
  showFilters();
}

// The inputs take local times.
function showPick() {
  const local = (ms) => new Date(ms - new Date(ms).getTimezoneOffset() * 60000).toISOString().slice(0, 16);
  el("pick-from").value = local(firstBucket(range(), nowMs()));
  el("pick-to").value = local(isFixed() ? range().end : nowMs());
}

function showFilters() {
  el("filters").replaceChildren();
  for (const dimension of view.report.dimensions) {
    const label = add(el("filters"), "label", `${dimension} `);
    const input = add(label, "input");
    input.name = dimension;
    input.placeholder = "any, or with *";
    input.value = visible(view.filters.find(([d]) => d === dimension)?.[1] ?? "");
    input.autocomplete = "off";
    input.spellcheck = false;
    input.setAttribute("list", `values-${dimension}`);
    add(label, "datalist").id = `values-${dimension}`;
  }
  el("all").hidden = view.filters.length === 0;
  el("all").href = address({ filters: [] });
}

async function complete(input) {
  const dimension = input.name, prefix = input.value;
  const { values } = await ask("series", [["report", view.report.name], ["dimension", dimension], ["prefix", prefix], ["limit", "20"]]);
  if (input.value !== prefix || !input.isConnected) return; // the user has typed more meanwhile
  input.list.replaceChildren(...values.map((value) => new Option(value, value)));
}

// ---- the daemon's answers

function forget() {
  buckets.clear();
  quantiles.clear();
  pasts = [];
  el("compare-note").hidden = true;
  el("heatmap-section").hidden = heatmapMeasure() === null;
  el("heatmap-section").classList.toggle("waiting", heatmapMeasure() !== null);
  wholeAt = restAt = -Infinity;
  notes = [];
  refused.clear();
  el("chart-section").classList.add("waiting");
}

function markFirst() {
  if (performance.getEntriesByName("chart").length > 0) return;
  performance.mark("chart");
  requestAnimationFrame(() => setTimeout(() => performance.mark("chart-painted")));
}

function takeRows(answer) {
  const place = (measure) => 1 + answer.measures.indexOf(measure);
  for (const row of answer.values) {
    const ms = Date.parse(row[0]);
    buckets.set(ms, row[place(view.measure)]);
    if (isQuantile()) quantiles.set(ms, LINES.map((name) => row[place(`${name}(${rowsMeasure()})`)]));
  }
  const first = isFixed() ? range().first : bucketAfter(range().step, Math.max(...buckets.keys()), 1 - range().count);
  for (const at of buckets.keys()) if (at < first) buckets.delete(at);
  for (const at of quantiles.keys()) if (at < first) quantiles.delete(at);
  const all = rows();
  showFigure(el("now"), figureText(view.measure, all.at(-1)[1]), valueText(all.at(-1)[1]));
  if (addsUp(view.report, view.measure)) showTotal(el("sum"), view.measure, all.reduce((sum, [, value]) => sum + value, 0));
  drawRows(all);
  el("chart-section").classList.remove("waiting");
  markFirst();
}

function drawRows(all) {
  const lines = isQuantile() ? { names: LINES, of: quantiles } : null;
  drawChart(all, range(), view.measure, addsUp(view.report, view.measure), lines, pasts, nowMs());
  drawBuckets(all, range().step, pasts);
}

function showTotal(element, measure, value) {
  showFigure(element, figureText(measure, value), valueText(value));
}

async function askRows() {
  const asked = address({});
  const whole = Date.now() - wholeAt >= range().whole_ms;
  if (!whole && (hears() || isFixed())) return;
  const newest = ["from", String(bucketAfter(range().step, bucketStart(range().step, nowMs()), -1))];
  const answer = await ask("query", [...question(view.report, rowsMeasure(), view.filters), ["step", range().step], ...(whole ? span() : [newest])]);
  if (asked !== address({})) return; // another view was chosen meanwhile
  if (whole) {
    wholeAt = Date.now();
    notes = answer.notes ?? [];
  }
  takeRows(answer);
}

// Asks for the range as a whole, by every measure: the mean of an hour is not the mean of its minutes' means.
async function askTotals() {
  const asked = address({});
  const answer = await ask("query", [...question(view.report, "all", view.filters), ...span()]);
  if (asked !== address({})) return;
  const [, ...values] = answer.values[0];
  const others = answer.measures.filter((m) => m !== view.measure && !(isQuantile() ? QUANTILE : HIDDEN).test(m)).slice(0, MEASURES);
  if (!addsUp(view.report, view.measure)) showTotal(el("sum"), view.measure, values[answer.measures.indexOf(view.measure)]);
  const cards = [...document.querySelectorAll("#figures .other")];
  others.forEach((measure, i) => {
    const card = cards[i] ?? el("sum").parentNode.cloneNode(true);
    if (cards[i] === undefined) (cards[i - 1] ?? el("sum").parentNode).after(card);
    cards[i] = card;
    card.className = "other";
    show(card.firstChild, `${measure} in the ${cardRange()}`);
    card.lastChild.removeAttribute("id");
    card.lastChild.dataset.measure = measure;
    showTotal(card.lastChild, measure, values[answer.measures.indexOf(measure)]);
  });
}

// Asks for the range as it was before, up to one bucket more, which may begin before this is asked again.
async function askPast({ name, days, ms }) {
  const [from, to] = [firstBucket(range(), nowMs()) - ms, bucketAfter(range().step, endOf(range(), nowMs())) - ms];
  if (!await countedBefore(view.report, new Date(from).toISOString().replace(".000", "")))
    return { name, days, of: null, notes: [`Nothing was counted yet ${name}`] };
  const answer = await ask("query", [...question(view.report, view.measure, view.filters), ["step", range().step],
    ["from", String(from)], ["to", String(to)]]);
  const place = 1 + answer.measures.indexOf(view.measure);
  return { name, days, of: new Map(answer.values.map((row) => [Date.parse(row[0]) + ms, row[place]])), notes: answer.notes ?? [] };
}

async function askPasts() {
  if (!view.compare) return;
  const asked = address({});
  const answers = await Promise.all(pastsOf(range(), nowMs()).map((past) => askPast(past).catch((error) => {
    if (!(error instanceof Refused) || error.status >= 500) throw error;
    return { of: null, notes: [`There is no line for ${past.name}: ${error.message}`] }; // the minutes of then have expired
  })));
  if (asked !== address({})) return;
  pasts = answers.filter(({ of }) => of !== null);
  const said = [...new Set(answers.flatMap((answer) => answer.notes))];
  el("compare-note").hidden = said.length === 0;
  show(el("compare-note"), said.map((note) => `${note}.`).join(" "));
  if (buckets.size > 0) drawRows(rows());
}

// The histogram that the heatmap shows: the chosen one, or the report's first. Null: there is none.
function heatmapMeasure() {
  const { measures, expressions } = view.report;
  const quantile = isQuantile() ? view.measure : measures.find((m, i) => expressions[i].startsWith("histogram("));
  return quantile === undefined || !hasWindow(range().step) ? null : quantile.replace(QUANTILE, "").slice(0, -1);
}

async function askHeatmap() {
  const measure = heatmapMeasure();
  if (measure === null) return;
  const asked = address({});
  const { step } = range();
  const [first, end] = [firstBucket(range(), nowMs()), endOf(range(), nowMs())];
  const length = bucketAfter(step, 0);
  const words = [["query", increaseOf(view.report, measure, view.filters, step)],
    ["start", String((first + length) / 1000)], ["end", String(end / 1000)], ["step", String(length / 1000)]];
  const { data } = await ask("query_range", words, "prometheus/api/v1");
  if (asked !== address({})) return;
  const histograms = (data.result[0]?.histograms ?? []).map(([s, { buckets: found }]) => [s * 1000 - length, found ?? []]);
  const starts = [];
  for (let ms = first; ms < end; ms += length) starts.push(ms);
  show(el("heatmap-measure"), measure);
  show(el("heatmap-step"), step);
  el("heatmap-section").hidden = false;
  el("heatmap-section").classList.remove("waiting");
  drawHeatmap(histograms, starts, range(), nowMs());
}

const lengthOf = (from, to) => Date.parse(to) - Date.parse(from);

// Asks for the series of this view. If the view is one series, it asks for all of the report, or of another report if
// this one has no dimensions.
async function askTop() {
  const asked = address({});
  const report = view.report.dimensions.length > 0 ? view.report
    : reports.find((r) => r.name === "pages") ?? reports.find((r) => r.dimensions.length > 0);
  if (report === undefined) return;
  const isOne = view.filters.filter(([, , word]) => word !== "where").length === report.dimensions.length;
  const filters = report === view.report && !isOne ? view.filters : [];
  const measure = report.measures.includes(view.measure) ? view.measure : report.measures[0];
  const { series, from, to, before } = await rank(report, measure, filters);
  const comparable = before !== null && before.total > 0 && await countedBefore(report, before.from);
  if (asked !== address({})) return;
  const longer = comparable && addsUp(report, measure) ? lengthOf(before.from, before.to) / lengthOf(from, to) : 1;
  drawTop(report, measure, series, comparable, longer, address);
}

const countedSince = new Map(); // report -> the earliest time, as the API has it, before which it counted something

// Did the report count anything before this time? A trend against a period in which it began would mislead.
async function countedBefore(report, time) {
  if (time >= (countedSince.get(report.name) ?? "9")) return true;
  const answer = await ask("query", [["report", report.name], ["measure", report.measures[0]], ["from", "1970-01-01"], ["to", time]]);
  if (answer.values[0][1]) countedSince.set(report.name, time);
  return Boolean(answer.values[0][1]);
}

function rank(report, measure, filters, ...more) {
  return ask("top", [...question(report, measure, filters), ...span(), ...more]);
}

// The report that tells the statuses of this view: it has a dimension of statuses and those of the filters. Null: none.
function classReport(filters) {
  const tells = (r) => (r.dimensions.includes("status_class") || (r.dimensions.length === 1 && r.dimensions[0] === "status"))
    && filters.every(([d]) => r.dimensions.includes(d));
  if (tells(view.report)) return view.report;
  return reports.filter(tells).sort((a, b) => a.dimensions.length - b.dimensions.length)[0] ?? null;
}

async function askClasses() {
  const asked = address({});
  const filters = view.filters.filter(([d]) => !d.startsWith("status"));
  const report = classReport(filters);
  if (report === null) {
    el("classes-section").hidden = true;
    return;
  }
  const measure = report.measures.find((m) => addsUp(report, m) && m === view.measure) ?? report.measures[0];
  const classes = new Map([1, 2, 3, 4, 5].map((c) => [`${c}xx`, 0]));
  if (report.dimensions.length === 1) {
    const all = report.dimensions[0] === "status" ? [["limit", "100"]] : []; // status_class has only five values
    for (const { series, value } of (await rank(report, measure, [], ...all)).series) {
      const name = `${series[report.dimensions[0]][0]}xx`;
      if (classes.has(name)) classes.set(name, classes.get(name) + value);
    }
  } else {
    await Promise.all([...classes.keys()].map(async (name) => {
      const answer = await ask("query", [...question(report, measure, [...filters, ["status_class", name]]), ...span()]);
      classes.set(name, answer.values[0][1] ?? 0);
    }));
  }
  if (asked === address({})) drawClasses(report.name, measure, [...classes]);
}

async function askRejects() {
  if (status.rejected > 0) drawRejects(await ask("rejects"));
  else el("rejects-section").hidden = true;
}

// A refused question stays wrong: its part of the view says why, and the other parts go on.
async function attempt(part, askPart) {
  const asked = address({});
  if (Date.now() - (refused.get(part)?.at ?? -Infinity) < REFUSED_MS) return;
  let why = null;
  try {
    await askPart();
  } catch (error) {
    if (!(error instanceof Refused) || error.status >= 500) throw error;
    why = { text: error.message, at: Date.now() };
  }
  if (asked !== address({})) return;
  if (why === null) refused.delete(part);
  else refused.set(part, why);
  if (why !== null && part === "rows") wholeAt = -Infinity; // ignore the stream's rows until an answer has all of them
}

async function askRest() {
  if (Date.now() - restAt < range().rest_ms) return;
  restAt = Date.now();
  await Promise.all([attempt("totals", askTotals), attempt("top", askTop), attempt("classes", askClasses),
    attempt("rejects", askRejects), attempt("heatmap", askHeatmap), attempt("pasts", askPasts)]);
}

// Clears refused parts of the view, so that they do not show another view's figures.
function showRefusals() {
  el("chart-section").classList.toggle("refused", refused.has("rows"));
  if (refused.has("rows")) showFigure(el("now"), "–");
  if (refused.has(addsUp(view.report, view.measure) ? "rows" : "totals")) showFigure(el("sum"), "–");
  if (refused.has("totals")) for (const card of document.querySelectorAll("#figures .other")) card.remove();
  if (refused.has("top")) el("top-section").hidden = true;
  if (refused.has("classes")) el("classes-section").hidden = true;
  if (refused.has("heatmap")) {
    el("heatmap-section").hidden = true;
    el("heatmap-section").classList.remove("waiting");
  }
  const why = refused.values().next().value;
  showNotice(notReady || why?.text || (unknown !== "" ? `The address says what the page does not know: ${unknown}.` : "") || notes.join(". ") || advice());
}

// What may be done if there are no figures; empty: nothing need be.
function advice() {
  if (status.consumed > 0 && status.rejected === status.consumed)
    return `All ${valueText(status.consumed)} lines since the start were rejected: the reasons are below. "tallyd explain" shows what becomes of a line.`;
  if (status.consumed > 0 || [...buckets.values()].some((value) => value !== null && value !== 0)) return "";
  return `Nothing was read from ${status.source} since the start ${durationText(status.uptime_ms)} ago. `
    + 'Figures come with the first line. "tallyd import FILE" counts a log that is there already.';
}

function takeStatus(s) {
  status = s;
  skewMs = s.now_ms - Date.now();
  notReady = s.ready ? "" : s.not_ready;
  showState(s.ready || s.state !== "counting" ? s.state : "not ready");
  show(el("about"), `${s.source} → ${s.store}, up ${durationText(s.uptime_ms)}`);
  show(el("version"), `tallyd ${s.version}`);
  showFigure(el("rate"), s.rate >= 100 ? valueText(Math.round(s.rate)) : s.rate.toFixed(1));
  showFigure(el("consumed"), valueText(s.consumed));
  showFigure(el("rejected"), valueText(s.rejected));
  el("rejected").classList.toggle("bad", s.rejected > 0);
  showFigure(el("lag"), valueText(s.lag));
  el("lag").parentNode.hidden = s.partitions.length === 0;
}

// Opens the stream that brings the newest buckets and the status, so that polling need not ask for them.
function listen() {
  stream?.close();
  heardAt = -Infinity;
  const words = new URLSearchParams([...question(view.report, rowsMeasure(), view.filters), ["step", range().step]]);
  const opened = new EventSource(`api/v1/stream?${words}`);
  const hear = (take) => (event) => {
    if (opened !== stream) return;
    heardAt = performance.now();
    take(JSON.parse(event.data));
  };
  opened.addEventListener("rows", hear((answer) => wholeAt > -Infinity && !isFixed() && takeRows(answer))); // askRows() brings all first
  opened.addEventListener("status", hear(takeStatus));
  stream = opened;
}

const hears = () => performance.now() - heardAt < STREAM_MS;

// ---- state and errors

function showState(state) {
  show(el("state"), state);
  el("state").dataset.state = state;
}

function showNotice(text) {
  show(el("notice"), text);
  el("notice").hidden = text === "";
}

function complain(error) {
  if (error instanceof Refused) {
    showNotice(error.message === "nothing was counted yet" ? `Nothing was counted yet. ${status === null ? "" : advice()}` : error.message);
    return;
  }
  lostAt ??= new Date();
  showState("no answer");
  showNotice(`The daemon has not answered since ${lostAt.toLocaleTimeString("en-GB")}; asking again every second.`);
}

// Asks for the reports anew: a different daemon may have come back.
async function start() {
  const [, found] = await Promise.all([ask("status").then(takeStatus), ask("reports")]);
  reports = found;
  lostAt = null;
  if (reports.length === 0) throw new Refused(503, "nothing was counted yet");
  takeAddress();
  history.replaceState(null, "", address({}));
}

async function refresh() {
  const mine = Date.now();
  askedAt = mine;
  try {
    if (reports.length === 0 || lostAt !== null) await start();
    else if (!hears()) await ask("status").then(takeStatus);
    await attempt("rows", askRows);
    await askRest();
    showRefusals();
  } catch (error) {
    complain(error);
  } finally {
    if (askedAt === mine) askedAt = null;
  }
}

async function poll() {
  if (!document.hidden) await refresh();
  setTimeout(poll, POLL_MS);
}

setInterval(() => {
  const waited = askedAt === null ? 0 : Date.now() - askedAt;
  if (waited > SLOW_MS && lostAt === null) showNotice(`The daemon takes its time: asked ${durationText(waited)} ago.`);
}, POLL_MS);

// ---- clicks and keys

el("report").addEventListener("change", () => go({ report: reports.find((r) => r.name === el("report").value) }));
el("measure").addEventListener("change", () => go({ measure: el("measure").value }));
el("pick").addEventListener("submit", (event) => {
  event.preventDefault();
  const [from, to] = [el("pick-from"), el("pick-to")].map((input) => new Date(input.value));
  el("pick-to").setCustomValidity(rangeBetween(from.getTime(), to.getTime()) === null ? "The range ends before it begins." : "");
  if (el("pick").reportValidity()) go({ range: `${from.toISOString()}/${to.toISOString()}` });
});
el("pick").addEventListener("input", () => el("pick-to").setCustomValidity(""));
el("compare").addEventListener("change", () => go({ compare: el("compare").checked }));
el("choice").addEventListener("submit", (event) => event.preventDefault());
el("filters").addEventListener("input", ({ target }) => {
  clearTimeout(typing);
  typing = setTimeout(() => complete(target).catch(complain), TYPING_MS);
});
el("filters").addEventListener("focusin", ({ target }) => complete(target).catch(complain));
el("filters").addEventListener("change", ({ target }) => {
  const others = view.filters.filter(([dimension]) => dimension !== target.name);
  const filter = [target.name, target.value, target.value.includes("*") ? "where" : "filter"];
  go({ filters: target.value === "" ? others : [...others, filter] });
  el("filters").querySelector(`[name="${CSS.escape(target.name)}"]`)?.focus();
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='?']");
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  takeAddress();
  refresh();
});
addEventListener("popstate", () => {
  if (reports.length === 0) return;
  takeAddress();
  refresh();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stream?.close();
  else if (view.report !== null) listen();
  wholeAt = -Infinity; // all buckets are asked for again
});
poll();
