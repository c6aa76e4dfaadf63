// @ts-check
// The views of the chart over time.
import { count, isRate, lift, liftSpan, metric, metricSpan, money } from "./format.js";
import { comparedOf, tick } from "./forest.jsx";
import { measureOf } from "./measure.js";
import { beamsOf, bounded, increments, unitOf } from "./points.js";
import { liftIn } from "./words.js";

/** @import { Line, Point, Results, View } from "./types.d.ts" */

/** @param {Point} point @param {number} id */
const ofID = (point, id) => point.variations.find((v) => v.id === id);

/** liftsOf returns the curves of the lifts with their credible intervals, or with the intervals of
 * a single test and those of the looks. The axis contains those of the last look: the first
 * ones can be much wider.
 * @param {Results} results @param {Point[]} points
 * @returns {View | undefined} */
function liftsOf(results, points) {
  const compared = comparedOf(results), bayesian = results.methodology === "bayesian";
  /** @type {Line[]} */
  const lines = compared.map(({ id, index, name }) => ({ index, name, entries: points.map((p) => ofID(p, id)?.comparison?.improvement) }));
  if (lines.every((line) => line.entries.every((e) => (e?.value ?? null) === null))) return undefined;
  const beams = bayesian ? [] : beamsOf(results), last = beams.at(-1)?.at;
  return {
    name: "lift", label: "Lift", cumulative: true, beams,
    marks: [0, ...beams.filter((b) => b.at === last && bounded(b.interval)).flatMap((b) => b.interval.map(Number))],
    caption: `${liftIn(results)} over ${results.variations[0].name} (cumulative) with ${results.significanceLevel}\u00a0% ${bayesian ? "credible interval" : "confidence interval of a single test"}${beams.length > 0 ? "; bars are the intervals of the looks, which decide" : ""}`,
    lines, write: lift, span: liftSpan, tick,
  };
}

/** metricsOf returns the curves of the compared metric.
 * @param {Results} results @param {Point[]} points
 * @returns {View} */
function metricsOf(results, points) {
  const measure = measureOf(results), name = measure.as;
  /** @type {Line[]} */
  const lines = results.variations.map((v, index) => ({ index, name: v.name, entries: points.map((p) => { const of = ofID(p, v.id); return of && measure.of(of); }) }));
  return {
    name: "metric", label: measure.name, cumulative: true, marks: [], beams: [],
    caption: `${measure.name} (cumulative) with ${results.significanceLevel}\u00a0% interval`, lines,
    write: (x, i) => metric(name, x, i), span: (i) => metricSpan(name, i),
    tick: (x) => (isRate(name) ? Number((100 * x).toFixed(3)) + "\u00a0%" : money(x)),
  };
}

const counted = /** @type {const} */ ({
  visitors: ["visitors", "Visitors", "New visitors"],
  conversions: ["convertedVisitors", "Conversions", "New converted visitors"],
});

/** countsOf returns the curves of a count for each bucket.
 * @param {Results} results @param {Point[]} points @param {keyof typeof counted} name
 * @returns {View} */
function countsOf(results, points, name) {
  const unit = unitOf(points), [field, label, caption] = counted[name];
  /** @type {Line[]} */
  const lines = results.variations.map((v, index) => ({ index, name: v.name, entries: increments(points, v.id, field) }));
  const negative = lines.some((line) => line.entries.some((e) => (e?.value ?? 0) < 0));
  return {
    name, label: `${label} per ${unit}`, cumulative: false, marks: [0], beams: [],
    caption: `${caption} per ${unit} (UTC)${negative ? ". Visitors who later see another variation no longer count, so a number can be negative" : ""}`,
    lines, write: count, span: () => "", tick: count,
  };
}

/** viewsOf returns the views that a series has.
 * @param {Results} results @param {Point[]} points at least two
 * @returns {View[]} */
export function viewsOf(results, points) {
  const lift = liftsOf(results, points);
  return [...(lift ? [lift] : []), metricsOf(results, points), countsOf(results, points, "visitors"), countsOf(results, points, "conversions")];
}
