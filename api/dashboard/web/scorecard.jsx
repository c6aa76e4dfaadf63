// @ts-check
import { query } from "./api.js";
import { count, day, half, isRate, lift, liftSpan, metric, money, number, decimals, probability, text } from "./format.js";
import { Axis, ForestRow, liftScale, tick } from "./forest.jsx";
import { useAnswer } from "./hooks.js";
import { Fault, Loading, Mark, Num } from "./parts.jsx";
import { Cell } from "./table.jsx";
import { decisions, guardrails, metrics, roles, verdicts, why } from "./words.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Comparison, Results, ScorecardRow, ScorecardVariation, Subject } from "./types.d.ts" */

/** Decision shows what to do, since when, and why.
 * @param {{ decision: NonNullable<Results["decision"]>, results: Results }} props */
function Decision({ decision, results }) {
  const primary = results.scorecard?.find((r) => r.role === "primary");
  const month = primary?.variations.find((v) => v.id === decision.variationId)?.impact?.perMonth;
  return (
    <div class={"conclusion decision " + decision.status}>
      <b class="tag">{decisions[decision.status]}</b>
      <p id="decision">{text(decision.text)}</p>
      {decision.decidedAt && <p class="quiet">Decided on <span class="at">{lastDay(decision.decidedAt)}</span>.</p>}
      {decision.status === "ship" && month?.value && <p class="quiet">A month: <Num value={month.value}>{monthly(month.value, month.interval)}</Num> {primary && isRate(primary.metric) ? "converted visitors" : "in " + metrics[primary?.metric ?? "averageValue"].toLowerCase()}{month.interval && month.interval[0] !== null && month.interval[1] !== null && <> ({monthly(month.interval[0], month.interval)} to {monthly(month.interval[1], month.interval)})</>}.</p>}
    </div>
  );
}

/** @param {string} end */
const lastDay = (end) => day(new Date(Date.parse(end) - 1).toISOString());

/** monthly formats an impact per month.
 * @param {number | null} x @param {import("./types.d.ts").Interval | null} interval */
const monthly = (x, interval) => (x === null ? "–" : (x > 0 ? "+" : "") + number(x, decimals(half(interval))));

/** Scorecard shows all metrics of every goal, and the decision.
 * @param {{ subject: Subject, route: Route }} props */
export function Scorecard({ subject, route }) {
  /** @type {Answer<Results>} */
  const { body, error, loading, again } = useAnswer(subject.path + "/results" + query([...route.asked.filter(([n]) => n !== "dimension"), ["scorecard", "true"]]), { every: 30000 });
  const rows = body?.scorecard?.filter((r) => r.role !== "other" || r.variations.some((v) => v.estimate.value));
  return (
    <section aria-labelledby="scorecard" aria-busy={loading}>
      <h2 id="scorecard">Scorecard</h2>
      {error && <Fault error={error} again={again} />}
      {body?.decision && <Decision decision={body.decision} results={body} />}
      {rows && body ? <Rows rows={rows} results={body} /> : loading && <Loading what="the scorecard" />}
    </section>
  );
}

/** Rows is the table, on a common scale of uplifts.
 * @param {{ rows: ScorecardRow[], results: Results }} props */
function Rows({ rows, results }) {
  const level = results.significanceLevel + "\u00a0%";
  const compared = rows.flatMap((r) => r.variations.flatMap((v, index) => (v.comparison ? [{ row: r, v, index, comparison: v.comparison }] : [])));
  const scale = liftScale(compared.filter(({ row }) => row.role !== "other").map(({ comparison }) => comparison));
  const several = results.variations.length > 2;
  return (
    <>
      <table class="cards scorecard" role="table" aria-labelledby="scorecard">
        <thead role="rowgroup"><tr role="row">{["Metric", "Role", results.variations[0]?.name || "Control", "Value", "Uplift", `Uplift with ${level} intervals`, "p at repeated looks", "Result"].map((h, i) => <th key={h} role="columnheader" scope="col" class={[2, 3, 4].includes(i) ? "n" : undefined}>{h}</th>)}</tr></thead>
        <tbody role="rowgroup">
          {compared.map(({ row, v, index, comparison: c }) => (
            <tr key={`${row.goal?.id} ${row.metric} ${v.id}`} role="row" data-metric={row.metric} data-goal={row.goal?.id} data-role={row.role}>
              <th role="rowheader" scope="row">{metrics[row.metric]} <small>{row.goal?.name ?? "all goals"}{several && <> · <Mark index={index} />{"\u00a0"}{v.name}</>}</small></th>
              <Cell label="Role">{roles[row.role]}{row.direction === "down" && <small>less is better</small>}</Cell>
              <Cell label="Control" class="n"><Num value={row.variations[0].estimate.value}>{metric(row.metric, row.variations[0].estimate.value, row.variations[0].estimate.interval)}</Num></Cell>
              <Cell label="Value" class="n"><Num value={v.estimate.value}>{metric(row.metric, v.estimate.value, v.estimate.interval)}</Num></Cell>
              <Cell label="Uplift" class="n"><b><Num value={c.improvement.value}>{lift(c.improvement.value, c.improvement.interval)}</Num></b> <small>{c.improvement.interval ? liftSpan(c.improvement.interval) : c.improvement.reason && why(c.improvement.reason)}</small></Cell>
              <Cell label="Intervals" class="wide"><ForestRow scale={scale} comparison={c} index={index} name={`${metrics[row.metric]}, ${v.name}`} /></Cell>
              <Cell label="p at repeated looks"><Num value={c.sequential?.pValue}>{probability(c.sequential?.pValue)}</Num>{v.qValue !== undefined && <small>q <Num value={v.qValue}>{probability(v.qValue)}</Num></small>}</Cell>
              <Cell label="Result" class="two"><Outcome row={row} v={v} comparison={c} /></Cell>
            </tr>
          ))}
        </tbody>
        <tfoot role="rowgroup"><tr role="row"><td role="cell" colSpan={5} /><Cell label="Scale" class="wide"><Axis scale={scale} write={tick} /></Cell><td role="cell" colSpan={2} /></tr></tfoot>
      </table>
      <p class="quiet">Thick: fixed-horizon interval. Thin: valid at every look. The primary metric decides; the others describe.</p>
    </>
  );
}

/** Outcome is the state of a guardrail, or the direction of a conclusive effect.
 * @param {{ row: ScorecardRow, v: ScorecardVariation, comparison: Comparison }} props */
function Outcome({ row, v, comparison: c }) {
  const g = v.guardrail;
  if (g) {
    const margin = g.margin !== undefined ? tick(g.margin).slice(1) : money(g.absoluteMargin);
    const tone = g.status === "safe" ? "better" : g.status === "harmed" ? "worse" : "inconclusive";
    return (
      <span class={"verdict " + tone}>{guardrails[g.status]} <small>margin {margin}{g.status === "notYetKnown" && g.requiredVisitors !== null && <>, needs {count(g.requiredVisitors)} visitors</>}</small></span>
    );
  }
  const up = c.verdict === "better", moved = (up || c.verdict === "worse") && c.conclusive;
  if (!moved) {
    const [sign, words] = verdicts[c.verdict === "better" ? "ahead" : c.verdict === "worse" ? "behind" : c.verdict];
    return <span class="verdict inconclusive">{sign} {words}</span>;
  }
  const good = up === (row.direction === "up");
  return <span class={"verdict " + (good ? "better" : "worse")}>{up ? "▲ higher" : "▼ lower"}{good ? ", good" : ", bad"}</span>;
}
