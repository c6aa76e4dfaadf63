// @ts-check
import { lift, metric } from "./format.js";
import { Help } from "./help.jsx";
import { Mark, Num } from "./parts.jsx";
import { metrics } from "./words.js";

/** @import { MetricName, Results, ScorecardRow } from "./types.d.ts" */

/** @type {[MetricName, string][]} */
const terms = [["goalsPerVisitor", "×"], ["averageValue", "="], ["valuePerVisitor", ""]];

/** Term is one factor, or the product, for one variation: the uplift of the values themselves, which no prior and no cap
 * changes, because only these multiply.
 * @param {{ row: ScorecardRow, id: number }} props */
function Term({ row, id }) {
  const own = row.variations.find((v) => v.id === id), of = [row.variations[0].estimate, own?.estimate];
  const [control, value] = of.map((e) => e?.uncapped ?? e?.value);
  const uplift = control && value !== null && value !== undefined ? (value - control) / Math.abs(control) : undefined;
  return (
    <div class="term">
      <span class="quiet">{metrics[row.metric]}</span>
      <b><Num value={uplift}>{lift(uplift, own?.comparison?.improvement.interval)}</Num></b>
      <span class="quiet"><Num value={control}>{metric(row.metric, control, of[0]?.interval)}</Num> → <Num value={value}>{metric(row.metric, value, of[1]?.interval)}</Num></span>
    </div>
  );
}

/** Cause shows what moved value per visitor: goals per visitor, average value, or both.
 * The three values of a variation multiply exactly.
 * @param {{ scored: Results | undefined }} props */
export function Cause({ scored }) {
  const goal = scored?.scorecard?.find((r) => r.role === "primary")?.goal;
  const rows = terms.map(([name]) => scored?.scorecard?.find((r) => r.metric === name && r.goal?.id === goal?.id));
  if (!scored || rows.some((r) => !r || r.variations.every((v) => !v.estimate.value))) return null;
  return (
    <section aria-labelledby="cause">
      <h2><span id="cause">What moved value per visitor</span><Help of="cause" /></h2>
      {scored.variations.filter((v) => v.comparison).map((v) => (
        <div key={v.id} class="causes" data-cause={v.id}>
          <span class="who"><Mark index={scored.variations.indexOf(v)} />{"\u00a0"}{v.name}</span>
          {terms.map(([name, sign], i) => { const row = rows[i]; return row && <span key={name} class="pairing"><Term row={row} id={v.id} />{sign && <span class="sign" aria-label={sign === "×" ? "times" : "equals"}>{sign}</span>}</span>; })}
        </div>
      ))}
      <p class="quiet">Uplifts over {scored.variations[0].name} as observed, without a prior or a cap, with the values of {scored.variations[0].name} and of the variation{goal && <> for the goal {goal.name}</>}.</p>
    </section>
  );
}
