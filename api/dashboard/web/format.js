// @ts-check
// Formats of numbers, equal to those of the engine (engine/result/numbers.go), except for
// no-break spaces. engine/testdata/formats.json has examples.

/** @import { Interval } from "./types.d.ts" */

const nothing = "–";

/** @typedef {number | null | undefined} Optional a missing number is shown as – */

/** count formats an integer with thousands separators.
 * @param {Optional} n */
export const count = (n) => n?.toLocaleString("en-US") ?? nothing;

/** halfEven changes a number that JavaScript rounded half up to one rounded half to
 * even, as Go rounds.
 * @param {string} rounded
 * @param {string} exact the number with 30 more decimals */
const halfEven = (rounded, exact) => (/[13579]$/.test(rounded) && /50{29}$/.test(exact) ? exact.slice(0, -30).replace(/\.$/, "") : rounded);

/** fixed is like toFixed, rounded half to even.
 * @param {number} x @param {number} d */
const fixed = (x, d) => halfEven(x.toFixed(d), x.toFixed(d + 30));

/** exponential formats a number with an exponent of at least two digits: 1.2e-13.
 * @param {number} x @param {number} d */
function exponential(x, d) {
  const [digits, exponent] = x.toExponential(d).split("e"), [exact] = x.toExponential(d + 30).split("e");
  return halfEven(digits, exact) + "e" + exponent.replace(/^(.)(.)$/, "$10$2");
}

/** number formats a number with thousands separators, or with an exponent if it is
 * long.
 * @param {number} x @param {number} d number of decimals */
export function number(x, d) {
  if (Math.abs(x) >= 1e9) return exponential(x, 3).replace(/\.?0*e/, "e");
  const [whole, rest] = fixed(x, d).split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? "." + rest : "");
}

/** rounded writes a number with two digits, as the server does in texts.
 * @param {Optional} x */
export function rounded(x) {
  if (x === null || x === undefined) return nothing;
  const digits = Number(x.toPrecision(2));
  const d = digits !== 0 && Math.abs(digits) < 10 ? Math.ceil(1 - Math.log10(Math.abs(digits))) : 0;
  return (digits > 0 ? "+" : "") + number(digits, Math.max(d, 0));
}

/** half returns half the width of an interval, or, if one end is unbounded, the absolute value of the other end.
 * @param {Interval | null} [interval] */
export function half(interval) {
  const [low, high] = interval ?? [null, null];
  if (low === null && high === null) return undefined;
  return low === null || high === null ? Math.abs(low ?? high ?? 0) : high / 2 - low / 2;
}

/** decimals returns the number of decimals that show two digits of a spread.
 * @param {number} [spread] */
export function decimals(spread) {
  return spread && spread > 0 && spread < Infinity ? Math.min(Math.max(1 - Math.floor(Math.log10(spread)), 0), 9) : 2;
}

/** percentDecimals is like decimals, for a fraction that is shown in percent.
 * @param {number} [spread] */
export function percentDecimals(spread) {
  if (!spread || spread < 0) return 1;
  const d = decimals(100 * spread);
  return d > 0 || spread >= 1 ? d : 1;
}

/** money formats an amount.
 * @param {Optional} x @param {number} [d] */
export const money = (x, d = 2) => (x === null || x === undefined ? nothing : number(x, d));

/** percent formats a fraction in percent.
 * @param {Optional} x @param {number} [d] */
export const percent = (x, d = 1) => (x === null || x === undefined ? nothing : number(Math.max(-Number.MAX_VALUE, Math.min(100 * x, Number.MAX_VALUE)), d) + "\u00a0%");

/** signedPercent is like percent, with the sign of positive numbers.
 * @param {number} x @param {number} d */
export const signedPercent = (x, d) => (x > 0 ? "+" : "") + percent(x, d);

/** lift formats a lift with the decimals that its interval permits.
 * @param {Optional} x @param {Interval | null} [interval] */
export const lift = (x, interval) => (x === null || x === undefined ? nothing : signedPercent(x, percentDecimals(half(interval))));

/** span formats the ends of an interval.
 * @param {Interval | null | undefined} interval @param {(x: number) => string} write */
function span(interval, write) {
  if (!interval) return nothing;
  const [low, high] = interval;
  return `${low === null ? "-∞" : write(low)} to ${high === null ? "+∞" : write(high)}`;
}

/** liftSpan formats the interval of a lift.
 * @param {Interval | null} [interval] */
export const liftSpan = (interval) => span(interval, (x) => lift(x, interval));

/** points formats a difference of lifts in percentage points, with the decimals that its interval permits.
 * @param {Optional} x @param {Interval | null} [interval] */
export const points = (x, interval) => lift(x, interval).replace("%", "points");

/** pointsSpan formats the interval of a difference of lifts.
 * @param {Interval | null} [interval] */
export const pointsSpan = (interval) => liftSpan(interval).replaceAll("\u00a0%", "");

/** text keeps numbers and their units on one line.
 * @param {string} words */
export const text = (words) => words.replaceAll(" %", "\u00a0%");

/** isRate reports whether a metric is a fraction.
 * @param {string} metric */
export const isRate = (metric) => metric.endsWith("Rate");

/** metric formats the value of a metric with the decimals that its interval permits.
 * @param {string} name @param {Optional} x @param {Interval | null} [interval] */
export function metric(name, x, interval) {
  return isRate(name) ? percent(x, percentDecimals(half(interval))) : money(x, decimals(half(interval)));
}

/** metricSpan formats the interval of a metric.
 * @param {string} name @param {Interval | null} [interval] */
export const metricSpan = (name, interval) => span(interval, (x) => metric(name, x, interval));

/** loss formats an expected loss: percentage points for rates, otherwise the unit of
 * the metric.
 * @param {string} name @param {Optional} x */
export function loss(name, x) {
  if (x === null || x === undefined) return nothing;
  const shown = isRate(name) ? 100 * x : x;
  const text = shown > 0 && shown < 0.01 ? "under 0.01" : money(shown, Math.min(decimals(shown), 2));
  return isRate(name) ? text + "\u00a0points" : text;
}

/** probability formats a p-value: 0.0312, or in words where nobody decides otherwise.
 * @param {Optional} p */
export function probability(p) {
  if (p === null || p === undefined) return nothing;
  return p < 0.0001 ? "under 0.0001" : p > 0.99 ? "over 0.99" : fixed(p, 4);
}

/** pInWords is a p-value in a sentence.
 * @param {Optional} p */
export const pInWords = (p) => probability(p).replace(/^(?=[0–])/, "= ");

/** chance formats a probability in percent. It never shows 0 % or 100 %.
 * @param {Optional} p */
export function chance(p) {
  if (p === null || p === undefined) return nothing;
  if (p > 1 - 0.0001) return "over 99.99\u00a0%";
  if (p < 0.0001) return "under 0.01\u00a0%";
  return percent(p, 2);
}

/** day formats the date of a timestamp.
 * @param {string | null} [time] */
export const day = (time) => (time ? time.slice(0, 10) : nothing);

/** lastDay returns the date of the day (UTC) that ends at a time.
 * @param {string} end */
export const lastDay = (end) => new Date(Date.parse(end) - 1).toISOString().slice(0, 10);

/** dayName formats the day (UTC) of a time: Monday, 30 November.
 * @param {string} time */
export function dayName(time) {
  const at = new Date(time);
  /** @param {Intl.DateTimeFormatOptions} parts */
  const write = (parts) => at.toLocaleDateString("en-GB", { ...parts, timeZone: "UTC" });
  return write({ weekday: "long" }) + ", " + write({ day: "numeric", month: "long" });
}

/** minute formats a timestamp in UTC.
 * @param {string | null} [time] */
export const minute = (time) => (time ? time.slice(0, 16).replace("T", " ") + " UTC" : nothing);
