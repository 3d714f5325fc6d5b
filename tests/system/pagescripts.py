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

# At points all over the heatmap: what it tells of the field there, and whether it is painted.
POINTS = """(() => {
    const heatmap = document.getElementById("heatmap"), canvas = heatmap.firstElementChild, points = [];
    const box = heatmap.getBoundingClientRect();
    for (let x = 2; x < box.width; x += 5) for (let y = 2; y < box.height; y += 3) {
        heatmap.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y }));
        points.push([x, y, document.getElementById("heatmap-readout").textContent]);
    }
    heatmap.dispatchEvent(new PointerEvent("pointerleave", { pointerType: "mouse" }));
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return points.filter(([, , text]) => !text.startsWith("Most")).map(([x, y, text]) => [text, data[4 * (y * canvas.width + x) + 3] > 0]);
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
