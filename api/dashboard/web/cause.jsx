// @ts-check
import { lift, metric, percent } from "./format.js";
import { Help } from "./help.jsx";
import { Mark, Num } from "./parts.jsx";
import { metrics } from "./words.js";

/** @import { MetricName, Results, ScorecardRow } from "./types.d.ts" */

/** @type {[MetricName, string][]} */
const terms = [["goalsPerVisitor", "×"], ["averageValue", "="], ["valuePerVisitor", ""]];

/** Term is one factor, or the product, for one variation: the lift of the values themselves, which no prior and no cap
 * changes, because only these multiply.
 * @param {{ row: ScorecardRow, id: number }} props */
function Term({ row, id }) {
  const own = row.variations.find((v) => v.id === id), of = [row.variations[0].estimate, own?.estimate];
  const [control, value] = of.map((e) => e?.uncapped ?? e?.value);
  const effect = own?.comparison?.improvement;
  const change = control && value !== null && value !== undefined ? (value - control) / Math.abs(control) : undefined;
  return (
    <div class="term">
      <span class="quiet">{metrics[/** @type {MetricName} */ (row.metric)]}</span>
      <b><Num value={change}>{lift(change, effect?.interval)}</Num></b>{effect?.observed !== undefined && <span class="quiet"> observed{row.metric === "valuePerVisitor" && <>, <Num value={effect.value}>{lift(effect.value, effect.interval)}</Num> expected</>}</span>}
      <span class="quiet"><Num value={control}>{metric(row.metric, control, of[0]?.interval)}</Num> → <Num value={value}>{metric(row.metric, value, of[1]?.interval)}</Num></span>
    </div>
  );
}

/** mainOf says which factor moved the value of a variation more, or that one moved against the other.
 * @param {ScorecardRow[]} rows of terms @param {number} id */
function mainOf(rows, id) {
  const [often, much] = rows.map((row) => {
    const [control, own] = [row.variations[0], row.variations.find((v) => v.id === id)].map((v) => v?.estimate.uncapped ?? v?.estimate.value);
    return control && own ? Math.log(own / control) : NaN;
  });
  if (!Number.isFinite(often + much) || often + much === 0) return "";
  const share = often / (often + much), names = [metrics.goalsPerVisitor, metrics.averageValue];
  if (share < 0 || share > 1) return `${names[share > 1 ? 0 : 1].toLowerCase()}, against ${names[share > 1 ? 1 : 0].toLowerCase()}`;
  const first = share >= 0.5 ? 0 : 1;
  return `${names[first].toLowerCase()} (${percent(first ? 1 - share : share, 0)} of the change) rather than ${names[1 - first].toLowerCase()}`;
}

/** Cause shows what moved value per visitor: goals per visitor, average value, or both.
 * The three values of a variation multiply exactly.
 * @param {{ scored: Results | undefined }} props */
export function Cause({ scored }) {
  const goal = scored?.scorecard?.find((r) => r.role === "primary")?.goal;
  const rows = terms.map(([name]) => scored?.scorecard?.find((r) => r.metric === name && r.goal?.id === goal?.id));
  if (!scored || rows.some((r) => !r || r.variations.every((v) => !v.estimate.value))) return null;
  return (
    <details class="cause"><summary>What moved {metrics.valuePerVisitor.toLowerCase()}: {scored.variations.filter((v) => v.comparison).map((v, i, all) => <span key={v.id}>{i > 0 && "; "}{all.length > 1 && v.name + ": "}<b>{mainOf(/** @type {ScorecardRow[]} */ (rows), v.id)}</b></span>)}</summary>
      {scored.variations.filter((v) => v.comparison).map((v) => (
        <div key={v.id} class="causes" data-cause={v.id}>
          <span class="who"><Mark index={scored.variations.indexOf(v)} />{"\u00a0"}{v.name}</span>
          {terms.map(([name, sign], i) => { const row = rows[i]; return row && <span key={name} class="pairing"><Term row={row} id={v.id} />{sign && <span class="sign" aria-label={sign === "×" ? "times" : "equals"}>{sign}</span>}</span>; })}
        </div>
      ))}
      <p class="quiet">Lifts over {scored.variations[0].name} as observed, without a prior or a cap: so the factors multiply to their product, with the values of {scored.variations[0].name} and of the variation{goal && <> for the goal {goal.name}</>}.<Help of="cause" /></p>
    </details>
  );
}
