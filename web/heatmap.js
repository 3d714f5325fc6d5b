// The heatmap below the chart: for each time bucket, how many events had a number of each size. Its rows are log-spaced.

import { chartArea } from "./chart.js";
import { compactText, el, show, valueText } from "./dom.js";
import { bucketAfter, bucketName, bucketStart, ticks, windowOf } from "./range.js";

const PER_OCTAVE = 16; // the narrowest buckets of a histogram grow by 2^(1/16)
const ROWS_MAX = 24;
const AXIS_PX = 20, LABEL_PX = 14; // height of the time axis; least distance of labels at the other one
const PALEST = 0.15; // opacity of a field with the fewest events

// rows: [{ low, high }], from the smallest numbers to the largest; columns: start in ms -> count of each row
let shown = { rows: [], columns: new Map(), most: 0, range: null, nowMs: 0 };
let chosen = null; // [start in ms, row] that the pointer or the arrow keys are on

// Zero has a bucket of its own. Place i of the others ends with 2^(i/16); they begin `width` places before, mirrored for numbers
// below zero.
function placeOf([, low, high, count]) {
  const near = Math.min(Math.abs(low), Math.abs(high)), far = Math.max(Math.abs(low), Math.abs(high));
  const sign = Math.sign(Number(low) + Number(high)), placesOf = (ratio) => Math.round(Math.log2(ratio) * PER_OCTAVE);
  return { sign, i: far > 0 ? placesOf(far) : 0, width: sign === 0 ? 1 : placesOf(far / near), count: Number(count) };
}

// The rows of one sign, without gaps; each is `width` places high.
function rowsOf(places, sign, width) {
  const at = places.filter((p) => p.sign === sign).map((p) => Math.ceil(p.i / width));
  if (at.length === 0) return [];
  const first = at.reduce((a, b) => Math.min(a, b)), last = at.reduce((a, b) => Math.max(a, b));
  const end = (row) => 2 ** ((row * width) / PER_OCTAVE);
  return Array.from({ length: last - first + 1 }, (_, n) => first + n).map((row) => ({ sign, row,
    low: sign === 0 ? 0 : sign > 0 ? end(row - 1) : -end(row), high: sign === 0 ? 0 : sign > 0 ? end(row) : -end(row - 1) }));
}

// As narrow rows of whole buckets as there may be.
function layRows(places) {
  for (let width = places.reduce((most, p) => Math.max(most, p.width), 1); ; width *= 2) {
    const rows = [...rowsOf(places, -1, width).reverse(), ...rowsOf(places, 0, width), ...rowsOf(places, 1, width)];
    if (rows.length <= ROWS_MAX) return { rows, width };
  }
}

const numberText = (value) => valueText(Number(value.toPrecision(4)));
const axisText = (value) => (Math.abs(value) >= 1000 ? compactText(value) : String(Number(value.toPrecision(3))));

function fieldText([ms, row]) {
  const { low, high } = shown.rows[row];
  const count = shown.columns.get(ms)?.[row] ?? 0;
  const size = low === high ? numberText(low) : `${numberText(low)} to ${numberText(high)}`;
  return `${bucketName(shown.range.step, ms)}, ${size}: ${valueText(count)} ${count === 1 ? "event" : "events"}`;
}

function showReadout() {
  if (chosen !== null && chosen[1] < shown.rows.length) {
    show(el("heatmap-readout"), fieldText(chosen));
    return;
  }
  for (const [ms, counts] of shown.columns) {
    const row = counts.indexOf(shown.most);
    if (row < 0) continue;
    show(el("heatmap-readout"), `Most: ${fieldText([ms, row])}. The stronger the colour, the more events.`);
    return;
  }
  show(el("heatmap-readout"), `No events with this field in the ${shown.range.title}.`);
}

// Pixels of the fields, those of the chart above from left to right.
function layout() {
  const box = el("heatmap");
  const { left, width } = chartArea() ?? { left: 56, width: box.clientWidth - 56 };
  const height = box.clientHeight - AXIS_PX;
  const [from, to] = windowOf(shown.range, shown.nowMs);
  return { left, width, height, from, to, row: height / Math.max(1, shown.rows.length),
    x: (ms) => left + ((ms - from) / (to - from)) * width };
}

function drawAxes(ctx, at, color) {
  ctx.fillStyle = color("--faint");
  ctx.font = `12px ${getComputedStyle(document.documentElement).fontFamily}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "bottom";
  for (const { v, label } of ticks(shown.range.step, at.from, at.to, at.width)) ctx.fillText(label, at.x(v), at.height + AXIS_PX);
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  let last = Infinity;
  shown.rows.forEach(({ low, high }, row) => {
    const y = Math.min(at.height - (row + (low === high ? 0.5 : 0)) * at.row, at.height - LABEL_PX / 2);
    if (last - y < LABEL_PX) return;
    ctx.fillText(axisText(low), at.left - 6, y);
    last = y;
  });
}

function drawFields(ctx, at, color) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(at.left, 0, at.width, at.height);
  ctx.clip();
  for (const [ms, counts] of shown.columns) {
    const x = at.x(ms), width = at.x(bucketAfter(shown.range.step, ms)) - x;
    counts.forEach((count, row) => {
      const y = at.height - (row + 1) * at.row;
      ctx.globalAlpha = PALEST + (1 - PALEST) * Math.sqrt(count / shown.most);
      ctx.fillStyle = color("--bar");
      if (count > 0) ctx.fillRect(x, y, Math.max(1, width - 1), Math.max(1, at.row - 1));
      if (chosen === null || chosen[0] !== ms || chosen[1] !== row) return;
      ctx.globalAlpha = 1;
      ctx.strokeStyle = color("--ink");
      ctx.lineWidth = 2;
      ctx.strokeRect(x, y, width, at.row);
    });
  }
  ctx.restore();
}

function draw() {
  const canvas = el("heatmap").firstElementChild;
  if (shown.range === null || el("heatmap").clientWidth === 0) return;
  const scale = devicePixelRatio;
  canvas.width = el("heatmap").clientWidth * scale;
  canvas.height = el("heatmap").clientHeight * scale;
  const ctx = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  ctx.scale(scale, scale);
  const at = layout();
  drawFields(ctx, at, color);
  drawAxes(ctx, at, color);
  showReadout();
}

// `histograms`: [start in ms, buckets as Prometheus' API has them: [rule, low, high, count]], oldest first; times without
// events may be absent. `starts`: those of all time buckets of the range.
export function drawHeatmap(histograms, starts, range, nowMs) {
  const places = new Map(histograms.map(([ms, buckets]) => [ms, buckets.map(placeOf)]));
  const { rows, width } = layRows([...places.values()].flat());
  const columns = new Map(starts.map((ms) => [ms, rows.map(() => 0)]));
  for (const [ms, buckets] of places) {
    for (const { sign, i, count } of buckets) {
      const row = rows.findIndex((r) => r.sign === sign && r.row === Math.ceil(i / width));
      if (columns.has(ms)) columns.get(ms)[row] += count;
    }
  }
  shown = { rows, columns, most: [...columns.values()].flat().reduce((a, b) => Math.max(a, b), 1), range, nowMs };
  draw();
}

function choose(event) {
  if (shown.range === null || shown.rows.length === 0) return;
  const at = layout(), box = el("heatmap").getBoundingClientRect();
  const ms = bucketStart(shown.range.step, at.from + ((event.clientX - box.left - at.left) / at.width) * (at.to - at.from));
  const row = Math.floor((at.height - (event.clientY - box.top)) / at.row);
  chosen = shown.columns.has(ms) && row >= 0 && row < shown.rows.length ? [ms, row] : null;
  draw();
}

el("heatmap").addEventListener("pointermove", choose);
el("heatmap").addEventListener("pointerdown", choose);
el("heatmap").addEventListener("pointerleave", (event) => {
  if (event.pointerType !== "mouse") return; // a finger that is lifted leaves, too
  chosen = null;
  draw();
});

el("heatmap").addEventListener("keydown", (event) => {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1], Home: [-Infinity, 0],
    End: [Infinity, 0], Escape: [0, 0] }[event.key];
  if (step === undefined || shown.rows.length === 0) return;
  event.preventDefault();
  const starts = [...shown.columns.keys()];
  const [column, row] = chosen === null ? [starts.length - (event.key === "ArrowLeft" ? 0 : 1), 0] : [starts.indexOf(chosen[0]), chosen[1]];
  const within = (value, count) => Math.max(0, Math.min(count - 1, value));
  chosen = event.key === "Escape" ? null : [starts[within(column + step[0], starts.length)], within(row + step[1], shown.rows.length)];
  draw();
});

addEventListener("resize", () => requestAnimationFrame(draw));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
