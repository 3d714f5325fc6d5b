"""Expressions for Page.evaluate() of browser.py that read what the page shows, and scripts that refuse what it asks."""

# The texts of all fields of the heatmap, by keys: column by column, from the smallest numbers on.
FIELDS = """(() => {
    const heatmap = document.getElementById("heatmap"), texts = [];
    const press = (key) => {
        heatmap.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }));
        return document.getElementById("heatmap-readout").textContent;
    };
    press("Home");
    for (let column = 0, before = null; ; column++) {
        for (let i = 0; i < 24; i++) press("ArrowDown");
        const first = press(column === 0 ? "Home" : "ArrowRight");
        if (first === before) break;
        before = first;
        for (let text = first, last = null; text !== last; last = text, text = press("ArrowUp")) texts.push(text);
    }
    press("Escape");
    return texts;
})()"""

# In the middle of each field of the heatmap: what the page tells of it, and whether it is painted.
# Fields may be 5 pixels wide and share the pixels of their edges.
POINTS = """(() => {
    const heatmap = document.getElementById("heatmap"), canvas = heatmap.firstElementChild;
    const box = heatmap.getBoundingClientRect();
    const textAt = (x, y) => {
        heatmap.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y }));
        return document.getElementById("heatmap-readout").textContent;
    };
    const middles = (labels) => labels.flatMap((label, from) => {  // of each run of the same label, but one that the box cuts
        if (label === null || label === labels[from - 1]) return [];
        const length = labels.slice(from).findIndex((other) => other !== label);
        return length < 0 ? [] : [from + Math.floor(length / 2)];
    });
    const line = (length, label, at) => middles(Array.from({ length }, (_, i) => {
        const text = at(i);
        return text.startsWith("Most") ? null : label(text);
    }));
    const columns = line(Math.floor(box.width), (text) => text.split(", ")[0], (x) => textAt(x, 2));
    const rows = line(Math.floor(box.height), (text) => text.slice(0, text.lastIndexOf(": ")), (y) => textAt(columns.at(-2), y));
    const points = columns.slice(1, -1).flatMap((x) => rows.map((y) => [x, y, textAt(x, y)]));
    heatmap.dispatchEvent(new PointerEvent("pointerleave", { pointerType: "mouse" }));
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return points.map(([x, y, text]) => [text, data[4 * (y * canvas.width + x) + 3] > 0]);
})()"""

# Which of the colours the chart has.
COLOURS = """[...new Set([...document.querySelectorAll('#chart canvas')].flatMap((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const style = getComputedStyle(document.documentElement);
    return %s.filter((name) => {
        const rgb = [1, 3, 5].map((at) => parseInt(style.getPropertyValue(name).trim().slice(at, at + 2), 16));
        for (let i = 0; i < data.length; i += 4)
            if (data[i + 3] > 200 && rgb.every((part, n) => Math.abs(part - data[i + n]) < 20)) return true;
        return false;
    });
}))].sort()"""

# The states that a test reads from the page, each at one moment.
ROWS = "[...document.getElementById('%s').tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent))"
BUCKETS = f"""({{ values: {ROWS % "buckets"}.map((row) => row[1]),
    starts: [...document.getElementById("buckets").tBodies[0].rows].map((row) => row.dataset.at),
    figures: ["now", "sum"].map((id) => document.getElementById(id).title) }})"""

# The hour by minute is refused, as if it were too much; how often, is counted.
REFUSING = """
window.refusals = 0;
const really = window.fetch;
window.fetch = (url, options) => {
  if (!/query[?].*step=minute/.test(url)) return really(url, options);
  window.refusals++;
  return Promise.resolve(new Response('{"error":"too much of <it>"}', { status: 422 }));
};"""
# The minutes of six days ago and before are refused, as if they had expired.
EXPIRED = """
const really = window.fetch;
window.fetch = (url, options) => {
  const words = new URLSearchParams(String(url).split("?")[1]);
  if (words.get("step") !== "minute" || Number(words.get("from")) > Date.now() - 6 * 86400000) return really(url, options);
  return Promise.resolve(new Response('{"error":"the minutes have expired"}', { status: 422 }));
};"""
REFUSED = "document.getElementById('notice').textContent === 'too much of <it>'"
