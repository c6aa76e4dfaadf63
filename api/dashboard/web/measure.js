// @ts-check
import { isRate, metric, metricSpan } from "./format.js";
import { nameOf } from "./words.js";

/** @import { Estimate, Interval, MetricName, Results, ScorecardRow, Variation } from "./types.d.ts" */

/** Measure is the metric of a report.
 * @typedef {object} Measure
 * @property {string} name
 * @property {MetricName} as the name of a metric that is written alike
 * @property {"share" | "money" | "number"} unit
 * @property {(variation: Pick<Variation, "metric"> & Partial<Pick<Variation, "metrics">>) => Estimate} of
 * @property {(value: number | null | undefined, interval?: Interval | null) => string} write
 * @property {(interval?: Interval | null) => string} span */

/** likeOf returns a metric with a name that is written as a unit is.
 * @param {"share" | "money" | "number" | undefined} unit
 * @returns {MetricName} */
const likeOf = (unit) => (unit === "share" ? "goalConversionRate" : "valuePerVisitor");

/** measureOfRow returns the name of the metric of a row, and that of a metric that is written alike.
 * @param {ScorecardRow} row
 * @returns {{ name: string, as: MetricName }} */
export const measureOfRow = ({ metric, name, unit, conversionWindow }) => (name === undefined ? { name: nameOf(/** @type {MetricName} */ (metric), conversionWindow), as: /** @type {MetricName} */ (metric) } : { name, as: likeOf(unit) });

/** measureOf returns the metric of a report: the one that its question writes, or the one with a name.
 * @param {Pick<Results, "question" | "compareMetric" | "conversionWindow">} results
 * @returns {Measure} */
export function measureOf({ question, compareMetric, conversionWindow }) {
  const named = compareMetric || "goalConversionRate", written = question?.metric !== undefined;
  const ofNamed = isRate(named) ? "share" : named === "goalsPerVisitor" ? "number" : "money";
  const unit = written ? question.unit ?? "number" : ofNamed, as = likeOf(unit);
  return {
    name: written ? question.name ?? question.metric ?? "" : nameOf(compareMetric, conversionWindow), as, unit,
    of: (v) => /** @type {Estimate} */ (v.metric ?? v.metrics?.[named]),
    write: (value, interval) => metric(as, value, interval),
    span: (interval) => metricSpan(as, interval),
  };
}
