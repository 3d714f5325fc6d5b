// The chart: bars or lines of one range, drawn by dygraphs, and the readout of the bar that the pointer or arrow keys choose.

import { compactText, el, show, valueText } from "./dom.js";
import { bucketAfter, bucketName, bucketStart, ticks, windowOf } from "./range.js";

let chart = null;
let shown = { rows: [], range: null, measure: "", addsUp: true, lines: null, pasts: [], nowMs: 0 };
let chosenMs = null; // the bucket that the pointer or the arrow keys are on

function colors() {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(name).trim();
}

function plotBars(e) {
  const ctx = e.drawingContext;
  const bottom = e.dygraph.toDomYCoord(0);
  const color = colors();
  const newest = e.points.length - 1;
  e.points.forEach((p, i) => {
    if (p.yval === null || Number.isNaN(p.yval)) return;
    const width = e.dygraph.toDomXCoord(bucketAfter(shown.range.step, p.xval)) - p.canvasx;
    ctx.fillStyle = color(p.xval === chosenMs ? "--ink" : i === newest ? "--bar-now" : "--bar");
    ctx.fillRect(p.canvasx + width * 0.1, p.canvasy, Math.max(1, width * 0.8), bottom - p.canvasy);
  });
}

// Draws a line through points of [x, y]; y is null where there is a gap. Returns its last point; null: it has none.
function plotLine(ctx, points) {
  let last = null;
  ctx.beginPath();
  points.forEach(([x, y], at) => {
    if (y === null) return;
    if (at > 0 && points[at - 1][1] !== null) ctx.lineTo(x, y);
    else ctx.moveTo(x - 0.5, y);
    ctx.lineTo(x + 0.5, y); // a dot, if nothing is beside it
    last = [x, y];
  });
  ctx.stroke();
  return last;
}

// The centre of the bucket and the height of the value that is at the same place of each row.
function pointsOf(e, valueOf) {
  return shown.rows.map(([ms]) => [(e.dygraph.toDomXCoord(ms) + e.dygraph.toDomXCoord(bucketAfter(shown.range.step, ms))) / 2, valueOf(ms) ?? null])
    .map(([x, value]) => [x, value === null ? null : e.dygraph.toDomYCoord(value)]);
}

function plotPasts(e) {
  const ctx = e.drawingContext;
  const color = colors();
  ctx.lineWidth = 2;
  for (const { days, of } of shown.pasts) {
    ctx.strokeStyle = color(`--past-${days}`);
    plotLine(ctx, pointsOf(e, (ms) => of.get(ms)));
  }
}

// The names of the lines stand at their right ends.
function plotLines(e) {
  const ctx = e.drawingContext;
  const color = colors();
  shown.lines.names.forEach((name, i) => {
    const points = pointsOf(e, (ms) => shown.lines.of.get(ms)?.[i]);
    ctx.strokeStyle = ctx.fillStyle = color(`--line-${i}`);
    ctx.lineWidth = shown.measure.startsWith(`${name}(`) ? 2.5 : 1.5;
    const last = plotLine(ctx, points);
    if (last === null) return;
    ctx.textAlign = "right";
    ctx.fillText(name, last[0], last[1] - 5);
    const chosen = points[shown.rows.findIndex(([ms]) => ms === chosenMs)];
    if (chosen !== undefined && chosen[1] !== null) ctx.fillRect(chosen[0] - 3, chosen[1] - 3, 6, 6);
  });
}

function plot(e) {
  if (shown.lines === null) plotBars(e);
  plotPasts(e);
  if (shown.lines !== null) plotLines(e);
}

// The page does not show dygraphs' legend, which would write inline styles: the page's policy forbids them.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((p) => p !== Dygraph.Plugins.Legend);

function makeChart(rows, range) {
  const color = colors();
  chart = new Dygraph(el("chart"), rows, {
    labels: ["bucket", "value"],
    plotter: plot,
    includeZero: true,
    dateWindow: range,
    gridLineColor: color("--line"),
    axisLineColor: color("--line"),
    interactionModel: {},
    highlightCircleSize: 0,
    axes: {
      x: { drawGrid: false, ticker: (from, to, pixels) => ticks(shown.range.step, from, to, pixels) },
      y: { axisLabelFormatter: (v) => (Number.isInteger(v) || !shown.addsUp ? compactText(v) : ""), axisLabelWidth: 48 },
    },
  });
}

function pastsText(ms) {
  if (shown.pasts.length === 0) return "";
  const values = shown.pasts.map(({ name, of }) => `${name} ${valueText(of.get(ms))}`).join(", ");
  return `; ${shown.lines === null ? "" : `${shown.measure} `}${values}`;
}

function showReadout() {
  const { rows, range, measure } = shown;
  const at = rows.find(([ms]) => ms === chosenMs);
  const most = rows.reduce((a, b) => (a[1] === null || (b[1] !== null && b[1] > a[1]) ? b : a));
  const lines = at !== undefined && shown.lines !== null ? shown.lines.of.get(at[0]) : undefined;
  if (lines !== undefined) show(el("readout"), `${bucketName(range.step, at[0])}: ${shown.lines.names.map((name, i) => `${name} ${valueText(lines[i])}`).join(", ")}${pastsText(at[0])}`);
  else if (at !== undefined) show(el("readout"), `${bucketName(range.step, at[0])}: ${valueText(at[1])} ${measure}${pastsText(at[0])}`);
  else if (most[1] === null || most[1] === 0) show(el("readout"), `Nothing in the ${range.title}.`);
  else show(el("readout"), `Most: ${valueText(most[1])} ${measure}, ${bucketName(range.step, most[0])}`);
}

function draw() {
  if (shown.rows.length === 0) return;
  const drawn = shown.lines === null ? [] : [...shown.lines.of.values()].flat();
  for (const { of } of shown.pasts) for (const [ms] of shown.rows) drawn.push(of.get(ms));
  const values = [...shown.rows.map(([, value]) => value), ...drawn].map((value) => value ?? 0);
  const top = (Math.max(...values, shown.addsUp ? 4 : 0) || 1) * 1.08;
  const range = windowOf(shown.range, shown.nowMs);
  if (chart === null) makeChart(shown.rows, range);
  chart.updateOptions({ file: shown.rows, dateWindow: range, valueRange: [Math.min(...values, 0) * 1.08, top] });
  showReadout();
}

// `rows`: [start in ms, value or null], oldest first; `addsUp`: values are counts or sums. `lines`: null, or what to draw instead
// of bars: { names, of: start in ms -> a value or null for each name }. `pasts`: earlier times that are drawn as pale lines:
// [{ name, days, of: start in ms of the row to compare with -> value }].
export function drawChart(rows, range, measure, addsUp, lines, pasts, nowMs) {
  shown = { rows, range, measure, addsUp, lines, pasts, nowMs };
  draw();
}

// The pixels that the chart's time axis takes. Null: nothing is drawn.
export function chartArea() {
  if (chart === null) return null;
  const { x, w } = chart.getArea();
  return { left: x, width: w };
}

el("chart").addEventListener("pointermove", (event) => {
  if (chart === null) return;
  chosenMs = bucketStart(shown.range.step, chart.toDataXCoord(event.clientX - el("chart").getBoundingClientRect().left));
  draw();
});

el("chart").addEventListener("pointerleave", () => {
  chosenMs = null;
  draw();
});

el("chart").addEventListener("keydown", (event) => {
  const starts = shown.rows.map(([ms]) => ms);
  const last = starts.length - 1;
  const now = starts.indexOf(chosenMs);
  const next = { ArrowLeft: now < 0 ? last : Math.max(0, now - 1), ArrowRight: now < 0 ? last : Math.min(last, now + 1),
    Home: 0, End: last, Escape: -1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  chosenMs = starts[next] ?? null;
  draw();
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  chart?.destroy();
  chart = null;
  draw();
});
