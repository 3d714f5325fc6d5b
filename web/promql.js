// The question that the page asks in PromQL: how many events came in each time bucket, by size, for the heatmap.

const WINDOWS = { minute: "1m", hour: "1h", day: "1d" }; // a time bucket in PromQL, which has no months

export const hasWindow = (step) => Object.hasOwn(WINDOWS, step);

// PromQL's labels are the dimensions, but for some characters (prom/names.h).
function labelsOf(dimensions) {
  const labels = [];
  for (const dimension of dimensions) {
    let label = dimension.replace(/^[0-9]/, "_$&").replace(/[^a-zA-Z0-9_]/g, "_");
    while (labels.includes(label) || ["__name__", "le"].includes(label)) label += "_";
    labels.push(label);
  }
  return labels;
}

// Filters as the view has them: [dimension, value], and "where" if the value has patterns.
function matchers(dimensions, filters) {
  const labels = labelsOf(dimensions);
  const regex = (text) => text.replace(/[\\.+?^$(){}[\]]/g, "\\$&").replace(/\*/g, ".*");
  return filters.map(([d, value, word]) => labels[dimensions.indexOf(d)]
    + (word === "where" ? `=~${JSON.stringify(regex(value))}` : `=${JSON.stringify(value)}`)).join(",");
}

export function increaseOf(report, histogram, filters, step) {
  return `sum(increase(${report.name}:${histogram}{${matchers(report.dimensions, filters)}}[${WINDOWS[step]}]))`;
}
