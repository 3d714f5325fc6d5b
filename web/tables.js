// The tables below the chart: its figures, the status classes, the top series.

import { add, el, percentText, show, valueText, visible } from "./dom.js";
import { bucketName } from "./range.js";

// `pasts`: those of drawChart().
export function drawBuckets(rows, step, pasts) {
  const body = el("buckets").tBodies[0], titles = el("buckets").tHead.rows[0];
  const cells = 2 + pasts.length;
  el("buckets").classList.toggle("compared", pasts.length > 0);
  while (titles.cells.length > cells) titles.lastElementChild.remove();
  while (titles.cells.length < cells) add(titles, "th", "", "number");
  pasts.forEach(({ name }, i) => show(titles.cells[2 + i], name));
  while (body.rows.length > rows.length) body.deleteRow(-1);
  while (body.rows.length < rows.length) {
    const row = body.insertRow();
    add(row, "td");
    add(row, "td", "", "number");
  }
  [...rows].reverse().forEach(([ms, value], i) => {
    show(body.rows[i].cells[0], bucketName(step, ms));
    show(body.rows[i].cells[1], valueText(value));
    while (body.rows[i].cells.length > cells) body.rows[i].deleteCell(-1);
    while (body.rows[i].cells.length < cells) add(body.rows[i], "td", "", "number");
    pasts.forEach(({ of }, past) => show(body.rows[i].cells[2 + past], valueText(of.get(ms))));
    body.rows[i].dataset.at = new Date(ms).toISOString();
  });
}

// `classes`: [["2xx", 9126], …]
export function drawClasses(report, measure, classes) {
  const total = classes.reduce((sum, [, value]) => sum + value, 0);
  el("classes-section").hidden = total === 0;
  el("classes-bar").replaceChildren();
  el("classes").replaceChildren();
  show(el("classes-measure"), measure);
  show(el("classes-of"), report);
  for (const [name, value] of classes.filter(([, v]) => v > 0)) {
    add(el("classes-bar"), "span", undefined, `class-${name[0]}`).style.flexGrow = String(value / total);
    const item = add(el("classes"), "li", undefined, `class-${name[0]}`);
    add(item, "b", name);
    add(item, "span", ` ${valueText(value)} `);
    add(item, "small", percentText(value / total));
  }
}

// The change from the period before, of which only the part counts that is as long as this one.
function trendText(entry, longer) {
  if (!entry.before) return "new";
  const before = entry.before / longer;
  const change = (100 * (entry.value - before)) / Math.abs(before);
  if (Math.abs(change) < 0.5) return "=";
  return `${change > 0 ? "+" : "−"}${Math.abs(change) >= 1000 ? "999+" : Math.abs(change).toFixed(0)} %`;
}

function beforeText(entry, longer) {
  return `before: ${valueText(entry.before)}${longer > 1 ? `, in a period that is ${longer.toFixed(2)} times as long` : ""}`;
}

function addSeries(row, report, entry, most, address) {
  const filters = report.dimensions.map((d) => [d, entry.series[d]]);
  report.dimensions.forEach((d, i) => {
    const cell = add(row, "td");
    const link = add(cell, "a", visible(entry.series[d]) || "(empty)");
    link.href = address({ report, filters });
    if (i === 0) add(cell, "span", "", "share").style.width = `${Math.max(0, (100 * entry.value) / most)}%`;
  });
}

// `series`: [{series: {path: "/x"}, value, share, before}, …], the largest first; `before` in it is null if the series
// had no value then. `comparable`: the period before was counted as a whole. `longer`: so many times it is as
// long as this one, if values add up over time; else 1. `address`: gives the address of a changed view.
export function drawTop(report, measure, series, comparable, longer, address) {
  const head = el("top").tHead, body = el("top").tBodies[0];
  const most = series.length > 0 && series[0].value > 0 ? series[0].value : Infinity;
  const focused = document.activeElement?.closest("#top") ? document.activeElement.getAttribute("href") : null;
  head.replaceChildren();
  body.replaceChildren();
  el("top").classList.toggle("many", report.dimensions.length > 1);
  const titles = head.insertRow();
  for (const d of report.dimensions) add(titles, "th", d);
  add(titles, "th", measure, "number");
  add(titles, "th", "share", "number small");
  if (comparable) add(titles, "th", "trend", "number small").title = "against the period before";
  for (const entry of series) {
    const row = body.insertRow();
    addSeries(row, report, entry, most, address);
    add(row, "td", valueText(entry.value), "number");
    add(row, "td", Number.isFinite(entry.share) ? percentText(entry.share) : "–", "number small");
    if (comparable) add(row, "td", trendText(entry, longer), "number small").title = beforeText(entry, longer);
    for (const link of row.querySelectorAll("a")) if (link.getAttribute("href") === focused) link.focus();
  }
  show(el("top-report"), report.name);
  el("top-section").hidden = series.length === 0;
}
