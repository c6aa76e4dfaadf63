// @ts-check
import { half, decimals, isRate, number, text } from "./format.js";
import { Help } from "./help.jsx";
import { Chip } from "./listing.jsx";
import { Decided, NextLook, Since } from "./looks.jsx";
import { Num } from "./parts.jsx";
import { conclusions } from "./words.js";

/** @import { Interval, Results, ScorecardRow } from "./types.d.ts" */

/** monthly formats an impact per month.
 * @param {number | null} x @param {Interval | null} interval */
const monthly = (x, interval) => (x === null ? "–" : (x > 0 ? "+" : "") + number(x, interval ? decimals(half(interval)) : 0));

/** Month is the impact of a variation on a metric per month, with its interval.
 * @param {{ row: ScorecardRow, id: number, currency?: string, level: number }} props */
function Month({ row, id, currency, level }) {
  const month = row.variations.find((v) => v.id === id)?.impact?.perMonth;
  if (!month || month.value === null || !month.interval) return null;
  const unit = isRate(row.metric) ? "converted visitors" : (currency ? currency + " of value" : "of value");
  return <span class="month"><b><Num value={month.value}>{monthly(month.value, month.interval)}</Num></b> {unit} a month <span class="quiet">({level}{"\u00a0%"} interval {monthly(month.interval[0], month.interval)} to {monthly(month.interval[1], month.interval)})</span></span>;
}

/** Worth shows what a variation for all visitors is worth a month: in the primary metric,
 * and in value.
 * @param {{ scored: Results, currency?: string }} props */
function Worth({ scored, currency }) {
  const id = scored.decision?.variationId, primary = scored.scorecard?.find((r) => r.role === "primary");
  if (id === null || id === undefined || !primary) return null;
  const rows = [primary, scored.scorecard?.find((r) => r.metric === "valuePerVisitor" && r.goal?.id === primary.goal?.id && r !== primary)];
  return <p class="worth">{rows.map((row) => row && <Month key={row.metric} {...{ row, id, currency }} level={scored.significanceLevel} />)}<Help of="month" /></p>;
}

/** Answer is what to do, since which look, when the next look is, why, and what it is worth
 * a month. A report without a decision shows its conclusion.
 * @param {{ results: Results, scored: Results | undefined, currency?: string }} props */
export function Answer({ results, scored, currency }) {
  const { conclusion } = results, decision = results.totals.visitors > 0 ? scored?.decision : undefined;
  if (!conclusion) return <p class="conclusion plain">These are the widget's own variations. Only its experiments are compared with control.</p>;
  const repeated = decision?.text.toLowerCase().includes(conclusion.text.toLowerCase().replace(/\.$/, ""));
  return (
    <div class={"conclusion " + (decision ? decision.status : conclusion.status)} role="status" aria-label="Conclusion">
      <p class="answer">{decision ? <Chip status={decision.status} /> : <b class="tag">{conclusion.reasons.includes("NOT_DECLARED") ? "No conclusion" : conclusions[conclusion.status]}</b>}
        {decision?.decidedAt && <span class="quiet" id="since">since <Since at={decision.decidedAt} looks={results.looks} /></span>}
        {results.nextLook && <span class="quiet"><span id="next-look"><NextLook nextLook={results.nextLook} /></span><Help of="look" /></span>}</p>
      {decision && <p class="answer-text" id="decision">{text(decision.text)}</p>}
      {decision && scored && <Worth scored={scored} currency={currency} />}
      <p id="conclusion" class={decision ? (repeated ? "hidden" : "why") : "answer-text"}>{text(conclusion.text)}</p>
      <Decided results={results} />
    </div>
  );
}
