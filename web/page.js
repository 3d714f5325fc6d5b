// The page: asks the API of the daemon that served it, every second, and shows what it says.
// Every value from a log is shown by textContent: whatever somebody wrote into a request stays text.
"use strict";

const MINUTE_MS = 60000;
const MINUTES = 60;
const POLL_MS = 1000; // status, and the last two minutes
const TOP_MS = 5000;
const WHOLE_MS = 60000; // all minutes again: late lines count where they belong
const TIMEOUT_MS = 10000;

const el = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

const view = { report: null, measure: "", filters: [] };
const minutes = new Map(); // start in ms -> value; null: absent
let reports = [];
let skewMs = 0; // the daemon's clock against ours
let wholeAt = -Infinity;
let topAt = -Infinity;
let chart = null;
let notReady = ""; // why the daemon is not, in its words
let chosenMs = null; // the minute that the pointer or the arrow keys are on

async function ask(path, parameters = []) {
  const query = new URLSearchParams(parameters);
  const abort = AbortSignal.timeout(TIMEOUT_MS);
  const reply = await fetch(`${path}?${query}`, { signal: abort, cache: "no-store" });
  const body = await reply.json();
  if (!reply.ok) throw new Error(body.error);
  return body;
}

function show(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function showFigure(id, text) {
  show(el(id), text);
  el(id).classList.toggle("long", text.length > 10);
}

function add(parent, tag, text, className) {
  const child = document.createElement(tag);
  if (text !== undefined) child.textContent = text;
  if (className) child.className = className;
  parent.append(child);
  return child;
}

function valueText(value) {
  return value === null || value === undefined ? "–" : number.format(value);
}

function duration(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

// ---- which report, measure and filter: from the address, so that a view can be bookmarked

function address(change) {
  const v = { ...view, ...change };
  const parameters = new URLSearchParams([["report", v.report.name], ["measure", v.measure]]);
  for (const f of v.filters) parameters.append("filter", f);
  return `?${parameters}`;
}

// Do the minutes of the view add up to its hour?
function addsUp() {
  return /^(count$|sum\()/.test(view.report.expressions[view.report.measures.indexOf(view.measure)]);
}

function fillSelect(select, names, chosen) {
  select.replaceChildren(...names.map((n) => new Option(n, n, false, n === chosen)));
}

function choose(reportName, measure, filters) {
  view.report = reports.find((r) => r.name === reportName) ?? reports[0];
  view.measure = view.report.measures.includes(measure) ? measure : view.report.measures[0];
  view.filters = filters.filter((f) => view.report.dimensions.includes(f.split("=")[0]));
  fillSelect(el("report"), reports.map((r) => r.name), view.report.name);
  fillSelect(el("measure"), view.report.measures, view.measure);
  for (const e of document.querySelectorAll(".measure")) show(e, view.measure);
  showFilters();
  history.replaceState(null, "", address({}));
  minutes.clear();
  wholeAt = topAt = -Infinity;
}

function showFilters() {
  const line = el("filters");
  line.replaceChildren();
  line.hidden = view.filters.length === 0;
  for (const f of view.filters) add(line, "b", f.replace("=", " = "));
  if (!line.hidden) add(line, "a", "show all").href = address({ filters: [] });
}

// ---- the chart

function axisColors() {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(name).trim();
}

function plotBars(e) {
  const ctx = e.drawingContext;
  const width = e.dygraph.toDomXCoord(MINUTE_MS) - e.dygraph.toDomXCoord(0);
  const bottom = e.dygraph.toDomYCoord(0);
  const color = axisColors();
  const newest = e.points.length - 1;
  e.points.forEach((p, i) => {
    if (p.yval === null || Number.isNaN(p.yval)) return;
    const chosen = p.xval === chosenMs;
    ctx.fillStyle = color(chosen ? "--ink" : i === newest ? "--bar-now" : "--bar");
    ctx.fillRect(p.canvasx + width * 0.1, p.canvasy, Math.max(1, width * 0.8), bottom - p.canvasy);
  });
}

function axisTime(ms) {
  return clock.format(new Date(ms));
}

// Round local times, as many as the width has room for.
function timeTicks(from, to, pixels) {
  const step = [5, 10, 15, 20, 30].find((m) => (to - from) / MINUTE_MS / m <= pixels / 70) ?? 30;
  const ticks = [];
  for (let t = Math.ceil(from / MINUTE_MS) * MINUTE_MS; t <= to; t += MINUTE_MS)
    if (new Date(t).getMinutes() % step === 0) ticks.push({ v: t, label: axisTime(t) });
  return ticks;
}

// Its legend is not shown, but would write inline styles, which the page's policy forbids.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((p) => p !== Dygraph.Plugins.Legend);

function makeChart(rows, range) {
  const color = axisColors();
  chart = new Dygraph(el("chart"), rows, {
    labels: ["minute", "value"],
    plotter: plotBars,
    includeZero: true,
    dateWindow: range,
    drawGridX: false,
    gridLineColor: color("--line"),
    axisLineColor: color("--line"),
    interactionModel: {},
    highlightCircleSize: 0,
    axes: {
      x: { ticker: (a, b, pixels) => timeTicks(a, b, pixels) },
      y: { axisLabelFormatter: (v) => (Number.isInteger(v) || !addsUp() ? compact.format(v) : ""), axisLabelWidth: 48 },
    },
  });
}

function drawChart() {
  const rows = [...minutes].sort((a, b) => a[0] - b[0]).map(([at, v]) => [at, v]);
  if (rows.length === 0) return;
  const nowMs = Date.now() + skewMs;
  const range = [nowMs - (MINUTES - 1) * MINUTE_MS, nowMs + MINUTE_MS]; // a bar begins where its minute does
  const values = rows.map((r) => r[1] ?? 0);
  const top = (Math.max(...values, addsUp() ? 4 : 0) || 1) * 1.08;
  if (chart === null) makeChart(rows, range);
  chart.updateOptions({ file: rows, dateWindow: range, valueRange: [Math.min(...values, 0) * 1.08, top] });
  showReadout(rows);
}

function showReadout(rows) {
  const at = minutes.has(chosenMs) ? chosenMs : null;
  const most = rows.reduce((a, b) => (a[1] === null || (b[1] !== null && b[1] > a[1]) ? b : a));
  const text = at !== null
    ? `${axisTime(at)}: ${valueText(minutes.get(at))} ${view.measure}`
    : `Most: ${valueText(most[1])} ${view.measure} at ${axisTime(most[0])}`;
  show(el("readout"), text);
}

function choosePointed(event) {
  if (chart === null) return;
  const box = el("chart").getBoundingClientRect();
  const ms = chart.toDataXCoord(event.clientX - box.left);
  chosenMs = Math.floor(ms / MINUTE_MS) * MINUTE_MS;
  drawChart();
}

function chooseByKey(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step === undefined && event.key !== "Escape") return;
  if (chart === null) return;
  event.preventDefault();
  const newest = Math.max(...minutes.keys());
  const from = minutes.has(chosenMs) ? chosenMs + step * MINUTE_MS : newest;
  chosenMs = step === undefined ? null : Math.min(newest, Math.max(Math.min(...minutes.keys()), from));
  drawChart();
}

// ---- tables

function drawMinutes() {
  const rows = [...minutes].sort((a, b) => b[0] - a[0]);
  const body = el("minutes").tBodies[0];
  while (body.rows.length > rows.length) body.deleteRow(-1);
  while (body.rows.length < rows.length) {
    const row = body.insertRow();
    add(row, "td");
    add(row, "td", "", "number");
  }
  rows.forEach(([at, value], i) => {
    show(body.rows[i].cells[0], axisTime(at));
    show(body.rows[i].cells[1], valueText(value));
    body.rows[i].dataset.minute = new Date(at).toISOString();
  });
}

function drawTop(report, measure, top) {
  const head = el("top").tHead, body = el("top").tBodies[0];
  const most = top.length > 0 && top[0].values[0] > 0 ? top[0].values[0] : Infinity;
  const focused = document.activeElement?.closest("#top") ? document.activeElement.getAttribute("href") : null;
  head.replaceChildren();
  body.replaceChildren();
  const titles = head.insertRow();
  for (const d of report.dimensions) add(titles, "th", d);
  add(titles, "th", measure, "number");
  for (const entry of top) {
    const row = body.insertRow();
    const filters = report.dimensions.map((d) => `${d}=${entry.series[d]}`);
    report.dimensions.forEach((d, i) => {
      const link = add(add(row, "td"), "a", entry.series[d] || "(empty)");
      link.href = address({ report, measure, filters });
      if (link.getAttribute("href") === focused) link.focus();
      if (i === 0) add(link.parentNode, "span", "", "share").style.width = `${Math.max(0, (100 * entry.values[0]) / most)}%`;
    });
    add(row, "td", valueText(entry.values[0]), "number");
  }
  show(el("top-report"), report.name);
  el("top-section").hidden = false;
}

// ---- asking

async function askMinutes(nowMs) {
  const whole = nowMs - wholeAt >= WHOLE_MS;
  const asked = address({});
  const answer = await ask("api/v1/query", [
    ["report", view.report.name], ["measure", view.measure], ...view.filters.map((f) => ["filter", f]),
    ["step", "minute"], ["from", whole ? `-${MINUTES - 1}m` : "-1m"],
  ]);
  if (asked !== address({})) return; // another view was chosen meanwhile
  if (whole) wholeAt = nowMs;
  for (const [at, value] of answer.values) minutes.set(Date.parse(at), value);
  const newest = Math.max(...minutes.keys());
  for (const at of minutes.keys()) if (at <= newest - MINUTES * MINUTE_MS) minutes.delete(at);
  showFigure("this-minute", valueText(minutes.get(newest)));
  if (addsUp()) {
    let sum = 0;
    for (const value of minutes.values()) sum += value;
    showFigure("last-hour", valueText(sum));
  } else if (whole) {
    await askHour(asked);
  }
  drawChart();
  drawMinutes();
}

// What the minutes alone do not say: the mean of an hour is not that of its minutes.
async function askHour(asked) {
  const answer = await ask("api/v1/query", [
    ["report", view.report.name], ["measure", view.measure], ...view.filters.map((f) => ["filter", f]),
    ["from", `-${MINUTES - 1}m`],
  ]);
  if (asked === address({})) showFigure("last-hour", valueText(answer.values[0][1]));
}

async function askTop(nowMs) {
  const shown = view.report.dimensions.length > 0 ? view.report
    : reports.find((r) => r.name === "pages") ?? reports.find((r) => r.dimensions.length > 0);
  if (shown === undefined || nowMs - topAt < TOP_MS) return;
  topAt = nowMs;
  const measure = shown.measures.includes(view.measure) ? view.measure : shown.measures[0];
  const answer = await ask("api/v1/query", [
    ["report", shown.name], ["measure", measure], ["from", `-${MINUTES - 1}m`], ["top", "10"],
  ]);
  drawTop(shown, measure, answer.top);
}

async function askStatus() {
  const s = await ask("api/v1/status");
  skewMs = s.now_ms - Date.now();
  showState(s.ready || s.state !== "counting" ? s.state : "not ready");
  show(el("about"), `${s.source} → ${s.store}, up ${duration(s.uptime_ms)}`);
  show(el("version"), `tallyd ${s.version}`);
  showFigure("rate", s.rate >= 100 ? number.format(Math.round(s.rate)) : s.rate.toFixed(1));
  showFigure("consumed", number.format(s.consumed));
  showFigure("rejected", number.format(s.rejected));
  el("rejected").classList.toggle("bad", s.rejected > 0);
  showFigure("lag", number.format(s.lag));
  el("lag").parentNode.hidden = s.partitions.length === 0;
  notReady = s.ready ? "" : s.not_ready;
}

function showState(state) {
  show(el("state"), state);
  el("state").dataset.state = state;
}

function complain(error) {
  const lost = error instanceof TypeError || error.name === "TimeoutError";
  if (lost) showState("no answer");
  showNotice(lost ? "The daemon does not answer; asking again every second." : error.message);
}

function showNotice(text) {
  show(el("notice"), text);
  el("notice").hidden = text === "";
}

async function start() {
  reports = await ask("api/v1/reports");
  const wanted = new URLSearchParams(location.search);
  choose(wanted.get("report"), wanted.get("measure"), wanted.getAll("filter"));
}

async function refresh() {
  try {
    const nowMs = Date.now();
    await askStatus();
    if (view.report === null) await start();
    await Promise.all([askMinutes(nowMs), askTop(nowMs)]);
    showNotice(notReady);
  } catch (error) {
    complain(error);
  }
}

async function poll() {
  if (!document.hidden) await refresh();
  setTimeout(poll, POLL_MS);
}

el("choice").addEventListener("change", () => {
  choose(el("report").value, el("measure").value, view.filters);
  refresh();
});
el("chart").addEventListener("pointermove", choosePointed);
el("chart").addEventListener("pointerleave", () => {
  chosenMs = null;
  drawChart();
});
el("chart").addEventListener("keydown", chooseByKey);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  chart?.destroy();
  chart = null;
  drawChart();
});
poll();
