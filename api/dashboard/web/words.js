// @ts-check
import steps from "../../../engine/result/next_steps.json" with { type: "json" };
import texts from "../../../engine/wording/reasons.json" with { type: "json" };

/** @import { Comparison, MetricName, Results, Subject } from "./types.d.ts" */

export const metrics = {
  goalConversionRate: "Goal conversion rate",
  conversionRate: "Conversion rate",
  completionRate: "Completion rate",
  goalsPerVisitor: "Goals per visitor",
  valuePerVisitor: "Value per visitor",
  profitPerVisitor: "Profit per visitor",
  extraValuePerVisitor: "Extra value per visitor",
  averageValue: "Average value",
};

/** nameOf returns the name of a metric with its conversion window.
 * @param {MetricName | null} metric @param {{ text: string } | null} [window] */
export const nameOf = (metric, window) => metrics[metric || "goalConversionRate"] + (window ? " " + window.text : "");

/** The metrics that variations can be compared on.
 * @type {Record<Subject["kind"], MetricName[]>} */
export const compareMetrics = {
  campaign: ["goalConversionRate", "valuePerVisitor", "profitPerVisitor", "goalsPerVisitor", "averageValue"],
  experiment: ["conversionRate", "completionRate", "goalConversionRate", "valuePerVisitor", "profitPerVisitor", "extraValuePerVisitor", "goalsPerVisitor", "averageValue"],
  widget: [],
};

/** The sign and the text of each verdict.
 * @type {Record<string, [string, string]>} */
export const verdicts = {
  better: ["▲", "better"],
  worse: ["▼", "worse"],
  ahead: ["△", "ahead"],
  behind: ["▽", "behind"],
  inconclusive: ["◆", "inconclusive"],
  insufficientData: ["…", "not enough data"],
};

/** verdictOf returns the sign and the word of a verdict, wherever it is shown: in the table, a scorecard, a filtered
 * view, a breakdown or beside a complement. The engine has the same words. Better and worse need a look, which only the
 * primary metric of all visitors has.
 * @param {Comparison} comparison
 * @returns {{ sign: string, word: string, decided: boolean }} */
export function verdictOf({ verdict, conclusive }) {
  const direction = { better: "ahead", worse: "behind" }[String(verdict)], [sign, word] = verdicts[(!conclusive && direction) || verdict];
  return { sign, word: word + (direction && conclusive === false ? ", not conclusive" : ""), decided: Boolean(direction && conclusive) };
}

/** liftIn returns what the lifts of a report are called.
 * @param {{ methodology: string }} results */
export const liftIn = ({ methodology }) => (methodology === "bayesian" ? "Expected lift" : "Lift");

export const conclusions = {
  winner: "Winner",
  loser: "Loser",
  inconclusive: "No decision yet",
  insufficientData: "Not enough data",
  invalid: "Not trustworthy",
};

/** The decisions, and the words of the scorecard. */
export const decisions = { ship: "Ship", rollBack: "Roll back", noDifference: "No difference", noWinner: "No winner", keepRunning: "Keep running", invalid: "Do not decide" };

/** What to do after a decision. The server has the same texts.
 * @type {Record<string, string>} */
export const nextSteps = steps;
export const roles = { primary: "primary metric", guardrail: "guardrail", secondary: "secondary", other: "other" };
export const guardrails = { safe: "✓ safe", harmed: "✗ harmed", notYetKnown: "… not yet known" };

/** The codes of warnings, in a few words.
 * @type {Record<string, string>} */
export const health = { SAMPLE_RATIO_MISMATCH: "split mismatch", SILENT: "no recent events", INTERACTION: "depends on another campaign", NO_EVENTS: "no events yet", MULTIPLE_EXPOSURES: "multi-exposed", UNKNOWN_VARIATIONS: "unknown variations", LEAK: "unexpected visitors", DECLARED_LATE: "declared late", DAYS_WITHOUT_VISITORS: "days without visitors", VARIATION_WITHOUT_VISITORS: "variation without visitors", RETURNS_DIFFER: "cancelled at other times" };

/** viewOf describes a report: goal, dates, filters, conversion window and breakdown.
 * @param {Results} results */
export const viewOf = ({ goal, window: { from, to }, filters: chosen, question, dimension, conversionWindow }) => [
  goal ? "Goal: " + goal.name : "All goals",
  ...(from ? ["from " + from] : []), ...(to ? ["until " + to] : []),
  ...Object.entries(chosen).map(([name, values]) => `${filters[name] ?? name}: ${[values].flat().map((v) => (v === "" ? "not set" : v)).join(", ")}`),
  ...(question?.visitors ? ["visitors with " + question.visitors] : []),
  ...(conversionWindow ? ["converted " + conversionWindow.text] : []),
  ...(dimension ? ["by " + dimension.split(",").map(labelOf).join(" · ")] : []),
].join(" · ");

/** The texts of reasons are those of the engine.
 * @type {Record<string, string>} */
const reasons = texts;

/** why returns the texts of reasons.
 * @param {...(string | undefined)} codes */
export const why = (...codes) => codes.flatMap((code) => (code ? reasons[code] || code : [])).join("; ");

/** The labels of filters.
 * @type {Record<string, string>} */
export const filters = {
  device: "Device", browser: "Browser", os: "Operating system", country: "Country", region: "Region", city: "City",
  utmSource: "UTM source", utmMedium: "UTM medium", utmCampaign: "UTM campaign", utmContent: "UTM content", utmTerm: "UTM term",
  referrer: "Referrer", firstVisitPage: "First visit page", visitorType: "Visitor type",
  goalValue: "Minimum goal value", zScore: "Maximum z-score",
};

/** labelOf returns the label of an attribute. An own attribute has its name.
 * @param {string} attribute */
export const labelOf = (attribute) => filters[attribute] ?? (attribute === "channel" ? "Channel" : attribute);

/** Filters that accept several values. */
export const listed = ["device", "browser", "os", "country", "region", "city"];
/** Filters with a number. */
export const numeric = ["goalValue", "zScore"];

/** kind writes the name of a type as words.
 * @param {string} type */
export const kind = (type) => type.replace(/([A-Z])/g, " $1").toLowerCase();
