// @ts-check
// Formats of numbers, equal to those of the engine (calculator_text.go). The width
// of an interval determines the number of decimals.

const nothing = "–";

export const count = (n) => (n === null || n === undefined ? nothing : n.toLocaleString("en-US"));

const half = (interval) => (interval && interval[0] !== null && interval[1] !== null ? (interval[1] - interval[0]) / 2 : undefined);

// decimals show two digits of a spread.
function decimals(spread) {
  if (!(spread > 0) || !Number.isFinite(spread)) return 2;
  return Math.min(Math.max(1 - Math.floor(Math.log10(spread)), 0), 9);
}

function percentDecimals(spread) {
  const d = decimals(100 * spread);
  return d > 0 || spread >= 1 ? d : 1;
}

const grouped = (x, d) => x.toLocaleString("en-US", { minimumFractionDigits: d, maximumFractionDigits: d });

export const money = (x, d = 2) => (x === null || x === undefined ? nothing : grouped(x, d));

export const percent = (x, d = 1) => (x === null || x === undefined ? nothing : (100 * x).toFixed(d) + "\u00a0%");

const signed = (x, text) => (x > 0 ? "+" + text : text);

export function lift(x, interval) {
  if (x === null || x === undefined) return nothing;
  return signed(x, percent(x, percentDecimals(half(interval))));
}

export function liftSpan(interval, like = interval) {
  if (!interval) return nothing;
  const end = (x, open) => (x === null ? open : lift(x, like));
  return `${end(interval[0], "-∞")} to ${end(interval[1], "+∞")}`;
}

// text keeps numbers and their signs on one line.
export const text = (words) => words.replaceAll(" %", "\u00a0%");

export const isRate = (metric) => metric.endsWith("Rate");

// metric writes a value of a metric, with the decimals that its interval allows.
export function metric(name, x, interval) {
  if (x === null || x === undefined) return nothing;
  return isRate(name) ? percent(x, percentDecimals(half(interval))) : money(x, decimals(half(interval)));
}

export function metricSpan(name, interval) {
  if (!interval) return nothing;
  const end = (x, open) => (x === null ? open : metric(name, x, interval));
  return `${end(interval[0], "-∞")} to ${end(interval[1], "+∞")}`;
}

// loss is a difference of two rates in points of percentage, or else in the
// metric's own unit.
export function loss(name, x) {
  if (x === null || x === undefined) return nothing;
  const shown = isRate(name) ? 100 * x : x;
  const text = shown > 0 && shown < 0.01 ? "under 0.01" : money(shown, Math.min(decimals(shown), 2));
  return isRate(name) ? text + "\u00a0points" : text;
}

export function probability(p) {
  if (p === null || p === undefined) return nothing;
  if (p >= 0.001) return String(Number(p.toFixed(4)));
  return p < 1e-6 ? "under 0.000001" : p.toFixed(1 - Math.floor(Math.log10(p)));
}

export function chance(p) {
  if (p === null || p === undefined) return nothing;
  if (p > 0.9999) return "over 99.99\u00a0%";
  if (p < 0.0001) return "under 0.01\u00a0%";
  return percent(p, 2);
}

export const day = (time) => (time ? time.slice(0, 10) : nothing);
export const minute = (time) => (time ? time.slice(0, 16).replace("T", " ") + " UTC" : nothing);
