// @ts-check
// What each term of the page means, in two sentences.

/** @type {Record<string, [title: string, meaning: string]>} */
export const terms = {
  uplift: ["Uplift", "The relative difference of a variation to control, also called lift. An uplift of +10 % on a rate of 5 % is a rate of 5.5 %."],
  intervals: ["Intervals", "The thick fixed-horizon interval holds for one look at the data that was planned beforehand. The thin interval holds however often you look, so it is wider."],
  repeated: ["p at repeated looks", "The probability of such a difference without any effect, valid however often you look. A result is conclusive if it is below one minus the significance level."],
  result: ["Result", "A metric is higher or lower only if its p at repeated looks is conclusive. Otherwise the variation is ahead, behind or inconclusive."],
  guardrail: ["Guardrail", "A metric that a variation must not harm by more than its margin. A variation ships only if every guardrail is safe."],
  primary: ["Primary metric", "The metric and goal that the campaign declares. Only the primary metric and the guardrails lead to a decision."],
  secondary: ["Secondary metrics", "Metrics that the campaign declares for information. Their q-value is the false discovery rate at which they would count."],
  other: ["Other metrics", "All other metrics of goals with events. They describe the variations and have no correction, so do not choose among them."],
  split: ["Split", "Compares the visitors of each variation with the configured shares. A sample ratio mismatch means that visitors are lost or counted twice, and the numbers cannot be trusted."],
  multiExposed: ["Multi-exposed visitors", "Visitors who saw more than one variation. They are excluded unless the campaign counts them for their first variation."],
  fullWeeks: ["Full weeks", "Visitors behave differently on each weekday. A test of full weeks contains each weekday equally often."],
  newest: ["Newest event", "The time of the newest event of this report. A running campaign is silent if it has no event for ten times the usual gap, and at least an hour."],
  dataThrough: ["Data through", "The report contains every event that the server accepted until this time. Later events appear within seconds."],
  plannedLook: ["Planned look", "The end of the first full day (UTC) with the required sample. It has nine tenths of the error rate, so its interval is narrower than at other looks."],
  required: ["Required sample", "The number of visitors that detects the minimum effect of interest with the planned power. With fewer visitors, a real effect of that size is often missed."],
  month: ["Impact per month", "The difference per visitor times the visitors of an average month, if everybody saw the variation. It assumes that the coming months are like the measured days."],
  cause: ["What moved value per visitor", "Value per visitor is goals per visitor times average value. The two factors show whether visitors buy more often or spend more."],
  segments: ["Segments", "The results of visitors with the same value of an attribute. With many values some differ by chance, so the verdicts are corrected for their number."],
  variations: ["Variations", "Each visitor counts once, for the variation of the first view. Conversions count from the first view on."],
};
