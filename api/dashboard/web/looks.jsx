// @ts-check
import { session } from "./api.js";
import { chance, count, dayName, lastDay, lift, liftSpan, metric, money, number, percent, pInWords, probability } from "./format.js";
import { Help } from "./help.jsx";
import { later } from "./later.jsx";
import { measureOf } from "./measure.js";
import { DataTable, Mark, Num } from "./parts.jsx";
import { Plane, pathOf } from "./plane.jsx";
import { scaleOf } from "./scale.js";
import { why } from "./words.js";

/** @import { Conclusion, Effect, Look, LookVariation, Results } from "./types.d.ts" */

const Readouts = later(() => import("./readouts.jsx").then((m) => m.Readouts));

/** hasDecision reports whether there is a winner or a loser.
 * @param {Conclusion | null} conclusion */
export const hasDecision = (conclusion) => conclusion?.status === "winner" || conclusion?.status === "loser";

/** NextLook is the last day of the next look, which is its date everywhere, and the day on which it is published.
 * @param {{ nextLook: NonNullable<Results["nextLook"]> }} props */
export const NextLook = ({ nextLook }) => <><span class="at">{lastDay(nextLook.end)}</span>, published on <span class="at">{dayName(nextLook.publishedAt)}</span></>;

/** Since says at which look, or on which day, something was decided.
 * @param {{ at: string, looks?: Look[] }} props */
export function Since({ at, looks }) {
  const look = looks?.find((l) => l.end === at);
  return <>{look && `look ${look.number}, `}<span class="at">{lastDay(at)}</span></>;
}

/** figures returns an effect with its interval as text.
 * @param {{ difference: Effect, improvement: Effect }} effect @param {Results} results */
function figures({ difference, improvement }, results) {
  const kind = `${results.significanceLevel}\u00a0% interval`, relative = improvement.value;
  if (relative !== null && improvement.interval) return `lift ${lift(relative, improvement.interval)} (${kind} ${liftSpan(improvement.interval)})`;
  const rate = measureOf(results).unit === "share";
  /** @param {number | null} x */
  const write = (x) => (x === null ? "open" : rate ? number(100 * x, 2) + "\u00a0points" : money(x));
  const ends = difference.interval;
  return `difference ${write(difference.observed ?? difference.value)}${ends ? ` (${kind} ${write(ends[0])} to ${write(ends[1])})` : ""}`;
}

/** Decided shows the figures of the look that concluded beside those of today, if they
 * differ.
 * @param {{ results: Results }} props */
export function Decided({ results }) {
  const c = results.conclusion, look = results.looks?.find((l) => l.number === c?.look);
  const then = look?.variations.find((v) => v.id === c?.variationId), today = results.variations.find((v) => v.id === c?.variationId)?.comparison;
  if (!look || !then || !today || then.difference.value === (today.difference.observed ?? today.difference.value)) return null;
  const { bayesian, improvement } = today;
  return (
    <dl id="decided" class="quiet">
      <dt>Decided at look {look.number}, <span class="at">{lastDay(look.end)}</span></dt><dd>{bayesian ? <>observed lift {lift(then.improvement.value, then.improvement.interval)}, chance to beat control {chance(then.chanceToBeatControl)}</> : <>{figures(then, results)}, p {pInWords(then.pValue)}</>}</dd>
      <dt>Today</dt><dd>{bayesian && <>observed lift {lift(improvement.observed, improvement.interval)}, expected </>}{figures(today, results)}{bayesian && <>, chance to beat control {chance(bayesian.chanceToBeatControl)}</>}</dd>
    </dl>
  );
}

/** Shown is the effect of a variation at a look. Beside a chance, it has no interval, which is that of another method.
 * @param {{ variation: LookVariation, name: string, bayesian: boolean }} props */
function Shown({ variation: { improvement, difference, reason }, name, bayesian }) {
  if (reason) return <span class="quiet">{why(reason)}</span>;
  if (improvement.value !== null) return <><Num value={improvement.value}>{lift(improvement.value, improvement.interval)}</Num> {!bayesian && <small>{liftSpan(improvement.interval)}</small>}</>;
  return <><Num value={difference.value}>{metric(name, difference.value, difference.interval)}</Num> <small>difference</small></>;
}

/** Boundary shows the statistic of a variation at each look between the bounds that it must reach.
 * @param {{ looks: Look[], id: number, index: number, name: string }} props */
function Boundary({ looks, id, index, name }) {
  const found = looks.map((l) => l.variations.find((v) => v.id === id)), z = found.map((v) => v?.z), bounds = found.map((v) => v?.criticalValue);
  const lower = bounds.map((c) => (c === null || c === undefined ? c : -c)), scale = scaleOf([0, ...z, ...bounds, ...lower]);
  const said = found.flatMap((v, i) => (v?.z !== null && v?.criticalValue ? [`look ${looks[i].number}: ${number(v?.z ?? 0, 2)} of ${number(v.criticalValue, 2)}`] : []));
  if (said.length < 2) return null;
  return (
    <Plane {...{ index, scale }} last={looks.length - 1} marks={looks.map((l, i) => [i, "look " + l.number])} write={String} label={`${name}: z and its bound at each look, ${said.join("; ")}`}>
      {(x, y) => <>
        {[bounds, lower].map((ends, i) => <polyline key={i} class="bound" points={pathOf(ends, x, y)} />)}
        <polyline class="line" points={pathOf(z, x, y)} />
        {z.map((value, i) => value !== null && value !== undefined && <circle key={i} cx={x(i)} cy={y(value)} r="5" />)}
      </>}
    </Plane>
  );
}

/** Looks shows how far the plan is, and a table of all looks.
 * @param {{ results: Results }} props */
export function Looks({ results }) {
  const { looks, nextLook, variations, methodology, conclusion, significanceLevel: level } = results;
  if (!looks) return null;
  const last = looks.at(-1), several = variations.length > 2, bayesian = methodology === "bayesian";
  return (
    <>
      <p><span id="looks">{last ? <>Look {last.number} on <span class="at">{lastDay(last.end)}</span>, after {percent(last.tau, 0)} of the plan.</> : "No look yet."}{nextLook && <> Next look on <NextLook nextLook={nextLook} />.</>}</span><Help of="look" /></p>
      {bayesian && <p class="quiet" id="rule">A look decides if the chance to beat control is above {50 + level / 2}{"\u00a0"}% or below {50 - level / 2}{"\u00a0"}%, and if the weekly test of the observed lift agrees: chances alone, read each week, would name too many winners.</p>}
      {last && (
        <details id="all-looks">
          <summary>Show all looks</summary>
          {!bayesian && <p class="quiet">z compares a variation with {variations[0].name}. A look is significant if z reaches a bound (dashed), which gets lower as the plan advances.</p>}
          {!bayesian && variations.map(({ id, name, comparison }, index) => comparison && <div key={id}>{several && <p class="who"><Mark index={index} />{"\u00a0"}{name}</p>}<Boundary {...{ looks, id, index, name }} /></div>)}
          <DataTable label="Looks" heads={["Look, date", "Visitors", ...(several ? ["Variation"] : []), ...(bayesian ? ["Observed lift", "Chance to beat control", "Decided"] : [`Lift with ${level}\u00a0% interval`, "z (bound)", "p", "Significant"])]}>
            {looks.flatMap((look) => look.variations.map((v) => {
              const index = variations.findIndex(({ id }) => id === v.id);
              return (
                <tr key={look.number + " " + v.id} data-look={look.number}>
                  <th scope="row">{look.number}<small>{lastDay(look.end)}</small></th><td><Num value={look.visitors}>{count(look.visitors)}</Num></td>
                  {several && <td><Mark index={index} />{"\u00a0"}{variations[index]?.name}</td>}
                  <td><Shown variation={v} bayesian={bayesian} name={measureOf(results).as} /></td>
                  {bayesian ? <td><Num value={v.chanceToBeatControl}>{chance(v.chanceToBeatControl)}</Num></td>
                    : <><td><Num value={v.z}>{money(v.z)}</Num> <small>({money(v.criticalValue)})</small></td><td><Num value={v.pValue}>{probability(v.pValue)}</Num></td></>}
                  <td>{(bayesian ? conclusion?.look === look.number && conclusion.variationId === v.id : v.significant) ? <b>yes</b> : "no"}</td>
                </tr>
              );
            }))}
          </DataTable>
        </details>
      )}
      {last && !session.shared && <Readouts results={results} />}
    </>
  );
}
