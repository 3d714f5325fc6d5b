// The rejected lines: how many for each reason, and samples of them with the format that would fit.

import { add, el, show, valueText, visible } from "./dom.js";

const SPAN = 300; // characters shown of a line

// Shows the line, with a mark from the column on. Columns are bytes, so only a line of ASCII gets a mark.
function addLine(parent, sample) {
  const line = add(parent, "code");
  const at = /^[\x00-\x7f]*$/.test(sample.line) ? sample.column - 1 : sample.line.length;
  const from = Math.max(0, Math.min(at, sample.line.length) - SPAN / 2), to = from + SPAN;
  add(line, "span", (from > 0 ? "…" : "") + visible(sample.line.slice(from, Math.min(at, to))));
  if (at < sample.line.length) add(line, "mark", visible(sample.line.slice(at, to)));
  if (sample.cut || to < sample.line.length) add(line, "span", "…");
}

function addSample(parent, sample) {
  const item = add(parent, "li");
  addLine(item, sample);
  add(item, "small", `${visible(sample.source)}, offset ${valueText(sample.offset)}, column ${valueText(sample.column)}`);
  if (sample.fits === null) return;
  const fits = add(item, "p", "This would read it: ");
  add(fits, "code", `decode: ${visible(sample.fits)}`);
}

// `answer`: that of /api/v1/rejects.
export function drawRejects(answer) {
  const opened = new Set([...document.querySelectorAll("#rejects details[open]")].map((d) => d.dataset.reason));
  el("rejects-section").hidden = answer.rejected === 0;
  show(el("rejects-count"), valueText(answer.rejected));
  el("rejects").replaceChildren();
  for (const [i, reason] of answer.reasons.entries()) {
    const part = add(el("rejects"), "details");
    part.dataset.reason = reason.reason;
    part.open = opened.has(reason.reason) || (opened.size === 0 && i === 0 && reason.samples.length > 0);
    const title = add(part, "summary");
    add(title, "b", valueText(reason.records));
    add(title, "span", ` ${reason.help}`);
    const list = add(part, "ul");
    for (const sample of reason.samples) addSample(list, sample);
  }
}
