// Elements and texts. Texts from logs get onto the page by textContent alone, with invisible characters made visible.

export const el = (id) => document.getElementById(id);

const exact = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const compactText = (value) => compact.format(value);

export function show(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function showAll(selector, text) {
  for (const element of document.querySelectorAll(selector)) show(element, text);
}

export function add(parent, tag, text, className) {
  const child = document.createElement(tag);
  if (text !== undefined) child.textContent = text;
  if (className) child.className = className;
  parent.append(child);
  return child;
}

export function showFigure(element, text, title = "") {
  show(element, text);
  element.title = title;
  element.classList.toggle("long", text.length > 8);
}

// A value as text; null: absent, such as a mean without events.
export function valueText(value) {
  return value === null || value === undefined ? "–" : exact.format(value);
}

// A value with as many digits as fit on a card.
export function shortText(value) {
  return valueText(Number.isInteger(value) || !Number.isFinite(value) ? value : Number(value.toPrecision(8)));
}

export function bytesText(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, Math.abs(value))) / 3));
  return `${Number((value / 1000 ** power).toPrecision(3))} ${units[power]}`;
}

export function percentText(part) {
  if (part > 0 && part < 0.0001) return "< 0.01 %";
  return `${(100 * part).toFixed(part < 0.1 ? 2 : 1)} %`;
}

// Shows line feeds and other controls as their pictures, and characters that turn or hide text as their numbers.
export function visible(text) {
  return text.replace(/[\u0000-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
      (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

export function durationText(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}
