// @ts-check
import { useState } from "preact/hooks";
import { Cause } from "./cause.jsx";
import { count, decimals, half, isRate, lift, metric, money, number, probability } from "./format.js";
import { Axis, ForestRow, liftScale, tick } from "./forest.jsx";
import { Help } from "./help.jsx";
import { measureOfRow } from "./measure.js";
import { Fault, Loading, Mark, Num } from "./parts.jsx";
import { Cell, Verdict } from "./table.jsx";
import { guardrails, roles, liftIn, verdictOf, why } from "./words.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Comparison, Interval, Results, Scale, ScorecardRow, ScorecardVariation } from "./types.d.ts" */

/** Scorecard shows all metrics of every goal.
 * @param {{ answer: Answer<Results> }} props */
export function Scorecard({ answer: { body, error, loading, again } }) {
  const [absolute, setAbsolute] = useState(false);
  const [looks, setLooks] = useState(false);
  const rows = body?.scorecard?.filter((r) => r.role !== "other" || r.variations.some((v) => v.estimate.value));
  return (
    <section aria-labelledby="scorecard" aria-busy={loading}>
      <div class="head"><h2 id="scorecard">Why</h2>
        <div class="checkboxes"><label class="inline check"><input type="checkbox" name="absolute" checked={absolute} onChange={(e) => setAbsolute(e.currentTarget.checked)} /> Absolute differences</label>
          {body?.methodology !== "bayesian" && <label class="inline check"><input type="checkbox" name="looks" checked={looks} onChange={(e) => setLooks(e.currentTarget.checked)} /> Intervals of the looks</label>}</div></div>
      <Cause scored={body} />
      {error && <Fault error={error} again={again} />}
      {rows && body ? <Rows rows={rows} results={body} {...{ absolute, looks }} /> : loading && <Loading what="the scorecard" />}
    </section>
  );
}

/** Change is the lift or the difference of a row, with its interval and that of the last look.
 * @param {{ row: ScorecardRow, comparison: Comparison, absolute: boolean, looks: boolean }} props */
function Change({ row, comparison: c, absolute, looks }) {
  const effect = absolute ? c.difference : c.improvement, look = looks && (absolute ? c.sequential?.difference : c.sequential?.improvement);
  const rate = isRate(measureOfRow(row).as);
  /** @param {number | null | undefined} x @param {Interval | null} [interval] */
  const write = (x, interval) => (!absolute ? lift(x, interval) : x === null || x === undefined ? "–" : (x > 0 ? "+" : "") + (rate ? number(100 * x, decimals(100 * (half(interval) ?? 0))) : number(x, decimals(half(interval)))));
  /** @param {Interval | null | undefined} i */
  const ends = (i) => (i ? `${i[0] === null ? "-∞" : write(i[0], i)} to ${i[1] === null ? "+∞" : write(i[1], i)}` : "–");
  return (
    <>
      <b><Num value={effect.value}>{write(effect.value, effect.interval)}{absolute && rate && effect.value !== null && "\u00a0points"}</Num></b>
      <small>{effect.interval ? ends(effect.interval) : effect.reason && why(effect.reason)}</small>
      {effect.observed !== undefined && <small class="observed">observed <Num value={effect.observed}>{write(effect.observed, effect.interval)}</Num></small>}
      {look && <small class="of-look">{ends(look)}</small>}
    </>
  );
}

/** @typedef {{ row: ScorecardRow, v: ScorecardVariation, index: number, comparison: Comparison }} Compared */

/** marginOf returns the lift at which a guardrail is harmed.
 * @param {Compared} compared */
const marginOf = ({ row, v }) => (v.guardrail?.margin === undefined ? undefined : (row.direction === "down" ? 1 : -1) * v.guardrail.margin);

/** Look names the last look, or says why there is no p-value.
 * @param {{ comparison: Comparison }} props */
const Look = ({ comparison: { sequential: s } }) => (s ? <small>{[s.look && "look " + s.look, s.pValue === null && why(s.reason)].filter(Boolean).join(": ")}</small> : null);

/** Row is one metric of a goal for one variation.
 * @param {{ compared: Compared, scale: Scale, several: boolean, absolute: boolean, looks: boolean, exploring: boolean, label: string }} props */
function Row({ compared, scale, several, absolute, looks, exploring, label }) {
  const { row, v, index, comparison: c } = compared, [control] = row.variations, decides = row.role === "primary" || row.role === "guardrail", of = measureOfRow(row);
  return (
    <tr role="row" data-metric={row.metric} data-goal={row.goal?.id} data-role={row.role}>
      <th role="rowheader" scope="row">{of.name} <small>{row.name === undefined && `${row.goal?.name ?? "all goals"}, `}{roles[row.role]}{row.direction === "down" && ", less is better"}{several && <> · <Mark index={index} />{"\u00a0"}{v.name}</>}</small></th>
      <Cell label="Control" class="n"><Num value={control.estimate.value}>{metric(of.as, control.estimate.value, control.estimate.interval)}</Num></Cell>
      <Cell label="Value" class="n"><Num value={v.estimate.value}>{metric(of.as, v.estimate.value, v.estimate.interval)}</Num></Cell>
      <Cell label={label} class="n two"><Change {...{ row, absolute, looks }} comparison={c} /></Cell>
      <Cell label="Intervals" class="wide"><ForestRow scale={scale} comparison={looks ? c : { ...c, sequential: undefined }} index={index} name={`${of.name}, ${v.name}`} margin={marginOf(compared)} /></Cell>
      {looks && <Cell label="p at the last look"><Num value={c.sequential?.pValue}>{probability(c.sequential?.pValue)}</Num>{decides && <Look comparison={c} />}{v.qValue !== undefined && <small>q <Num value={v.qValue}>{probability(v.qValue)}</Num></small>}</Cell>}
      <Cell label="Result" class="two"><Outcome {...{ row, v, exploring }} comparison={c} /></Cell>
    </tr>
  );
}

const order = /** @type {const} */ (["primary", "guardrail", "secondary", "other"]);

/** Rows is the table, grouped by role, on a common scale of lifts.
 * @param {{ rows: ScorecardRow[], results: Results, absolute: boolean, looks: boolean }} props */
function Rows({ rows, results, absolute, looks }) {
  const [others, showOthers] = useState(false);
  const level = results.significanceLevel + "\u00a0%";
  const compared = rows.flatMap((row) => row.variations.flatMap((v, index) => (v.comparison ? [{ row, v, index, comparison: v.comparison }] : [])));
  const scale = liftScale(compared.filter(({ row }) => row.role !== "other").map(({ comparison }) => comparison), compared.flatMap((c) => marginOf(c) ?? []));
  const several = results.variations.length > 2, hidden = compared.filter(({ row }) => row.role === "other").length;
  const heads = ["Metric", results.variations[0]?.name || "Control", "Value", absolute ? "Difference" : liftIn(results), `${looks ? "Lift " : ""}with ${level} interval${looks ? "s" : ""}`, ...(looks ? ["p at the last look"] : []), "Result"];
  const helps = ["", "", "", "lift", ...(looks ? ["intervals", "lastLook"] : [""]), "result"];
  return (
    <>
      <table class="cards scorecard" role="table" aria-label="Scorecard">
        <thead role="rowgroup"><tr role="row">{heads.map((h, i) => <th key={h} role="columnheader" scope="col" class={i > 0 && i < 4 ? "n" : undefined}>{h}{helps[i] && <Help of={helps[i]} />}</th>)}</tr></thead>
        {order.map((role) => {
          const found = compared.filter(({ row }) => row.role === role);
          if (found.length === 0 || (role === "other" && !others)) return null;
          return (
            <tbody key={role} role="rowgroup">
              {found.map((c) => <Row key={`${c.row.goal?.id} ${c.row.metric} ${c.v.id}`} compared={c} {...{ scale, several, absolute, looks }} exploring={!results.decision} label={heads[3]} />)}
            </tbody>
          );
        })}
        <tfoot role="rowgroup"><tr role="row"><td role="cell" colSpan={4} /><Cell label="Scale" class="wide"><Axis scale={scale} write={tick} /></Cell><td role="cell" colSpan={heads.length - 5} /></tr></tfoot>
      </table>
      <p class="quiet">{hidden > 0 && <button type="button" class="link" id="others" aria-expanded={others} onClick={() => showOthers(!others)}>{others ? "Hide" : "Show"} other metrics ({hidden})</button>} {looks ? "Upper, thick: interval of a single test on the data of today, which describes. Lower, thin: interval of the last look, which decides. Only the primary metric and the guardrails have looks." : "The data of today, which describe: the looks decide."}{compared.some((c) => c.v.guardrail) && " Dashed amber: the margin of a guardrail."}</p>
    </>
  );
}

/** Outcome is the state of a guardrail, always among all visitors, or the direction of a conclusive effect.
 * @param {{ row: ScorecardRow, v: ScorecardVariation, comparison: Comparison, exploring: boolean }} props */
function Outcome({ row, v, comparison: c, exploring }) {
  const g = v.guardrail;
  if (g) {
    const margin = g.margin !== undefined ? tick(g.margin).slice(1) : money(g.absoluteMargin);
    const tone = g.status === "safe" ? "better" : g.status === "harmed" ? "worse" : "unknown";
    return (
      <span class={"verdict " + tone}>{guardrails[g.status]} <small>margin {margin}{exploring && ", all visitors"}{g.status === "notYetKnown" && g.requiredVisitors !== null && <>, needs {count(g.requiredVisitors)} visitors</>}</small></span>
    );
  }
  if (!verdictOf(c).decided) return <Verdict comparison={c} />;
  const up = c.verdict === "better";
  const good = up === (row.direction === "up");
  return <span class={"verdict " + (good ? "better" : "worse")}>{up ? "▲ higher" : "▼ lower"}{good ? ", good" : ", bad"}</span>;
}
