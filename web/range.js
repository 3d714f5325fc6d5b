// The ranges of the page, their buckets and names: four that end now, and any other. Times are ms since 1970.

const MINUTE_MS = 60000, HOUR_MS = 3600000, DAY_MS = 86400000;
const LENGTHS_MS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS }; // months vary

// `count`: number of buckets. The last hour is the minute that goes on and 60 whole ones before it; the last 24 hours alike.
// `whole_ms`: interval at which all buckets are asked for again, since late lines change old ones;
// `rest_ms`: interval for the other parts of the page.
export const RANGES = {
  hour: { link: "Hour", title: "last hour", now: "this minute", step: "minute", count: 61, whole_ms: 5000, rest_ms: 10000 },
  day: { link: "Day", title: "last 24 hours", now: "this hour", step: "hour", count: 25, whole_ms: 15000, rest_ms: 30000 },
  month: { link: "30 days", title: "last 30 days", now: "today", step: "day", count: 30, whole_ms: 60000, rest_ms: 120000 },
  year: { link: "12 months", title: "last 12 months", now: "this month", step: "month", count: 12, whole_ms: 60000, rest_ms: 120000 },
};

// The start of the bucket that holds a time.
export function bucketStart(step, ms) {
  const at = new Date(ms);
  if (step === "month") return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1);
  return Math.floor(ms / LENGTHS_MS[step]) * LENGTHS_MS[step];
}

// The start of the bucket that is `count` buckets after the one at `ms`.
export function bucketAfter(step, ms, count = 1) {
  const at = new Date(ms);
  if (step === "month") return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + count, 1);
  return ms + count * LENGTHS_MS[step];
}

// The longest ranges that are shown by each step.
const STEPS_MS = [["minute", 4 * HOUR_MS], ["hour", 10 * DAY_MS], ["day", 400 * DAY_MS], ["month", Infinity]];

// Any range, by the step that suits it; its ends are rounded to whole buckets. Null: it is empty, or no range.
export function rangeBetween(fromMs, toMs) {
  if (!(fromMs >= 0 && fromMs < toMs)) return null;
  const [step] = STEPS_MS.find(([, longest]) => toMs - fromMs <= longest);
  const first = bucketStart(step, fromMs), end = bucketAfter(step, bucketStart(step, toMs - 1));
  return { title: `range from ${moment(first)} to ${moment(end)}`, step, first, end, whole_ms: 60000, rest_ms: 60000 };
}

export function firstBucket(range, nowMs) {
  if (range.end !== undefined) return range.first;
  return bucketAfter(range.step, bucketStart(range.step, nowMs), 1 - range.count);
}

// The time range of the chart. A bar begins at its minute's start, and the last hour moves every second.
export function windowOf(range, nowMs) {
  if (range.end !== undefined) return [range.first, range.end];
  if (range.step === "minute") return [nowMs - (range.count - 1) * MINUTE_MS, nowMs + MINUTE_MS];
  return [firstBucket(range, nowMs), bucketAfter(range.step, bucketStart(range.step, nowMs))];
}

// The times to compare a range with: yesterday and last week, each unless it overlaps the range by more than a bucket.
export function pastsOf(range, nowMs) {
  const [first, end] = [firstBucket(range, nowMs), endOf(range, nowMs)];
  return [{ name: "yesterday", days: 1, ms: DAY_MS }, { name: "last week", days: 7, ms: 7 * DAY_MS }]
    .filter(({ ms }) => end - first <= ms + LENGTHS_MS[range.step]);
}

// The end of the last bucket.
export function endOf(range, nowMs) {
  return range.end ?? bucketAfter(range.step, bucketStart(range.step, nowMs));
}

const format = (options) => {
  const formatter = new Intl.DateTimeFormat("en-GB", options);
  return (ms) => formatter.format(new Date(ms));
};
const clock = format({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const moment = format({ day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const weekday = format({ weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = format({ day: "numeric", month: "short", timeZone: "UTC" });
const month = format({ month: "short", timeZone: "UTC" });
const monthOfYear = format({ month: "long", year: "numeric", timeZone: "UTC" });

const AXES = { minute: clock, hour: clock, day, month };
const NAMES = { minute: clock, hour: weekday, day, month: monthOfYear };

export const bucketName = (step, ms) => NAMES[step](ms);

// The axis may have a tick at every n-th bucket: at round local times, or at days and months by their number.
const EVERY = { minute: [5, 10, 15, 20, 30], hour: [1, 2, 3, 4, 6, 12], day: [1, 2, 3, 5, 10], month: [1, 2, 3, 6] };
const ORDINALS = {
  minute: (ms) => new Date(ms).getMinutes(),
  hour: (ms) => new Date(ms).getHours(),
  day: (ms) => Math.floor(ms / DAY_MS),
  month: (ms) => new Date(ms).getUTCMonth(),
};

// As many ticks as the width has room for, in the form that dygraphs takes.
export function ticks(step, fromMs, toMs, pixels) {
  const starts = [];
  for (let ms = bucketStart(step, fromMs); ms < toMs; ms = bucketAfter(step, ms)) if (ms >= fromMs) starts.push(ms);
  const every = EVERY[step].find((n) => starts.length / n <= pixels / 70) ?? EVERY[step].at(-1);
  return starts.filter((ms) => ORDINALS[step](ms) % every === 0).map((ms) => ({ v: ms, label: AXES[step](ms) }));
}
