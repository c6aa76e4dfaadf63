// @ts-check
import { chance, count, dayName, isRate, lastDay, lift, liftSpan, metric, money, number, percent, probability } from "./format.js";
import { Help } from "./help.jsx";
import { Mark, Num } from "./parts.jsx";
import { why } from "./words.js";

/** @import { Conclusion, Effect, Look, LookVariation, Results } from "./types.d.ts" */

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
function figures({ difference, improvement }, { compareMetric, significanceLevel }) {
  const kind = `${significanceLevel}\u00a0% interval`, relative = improvement.value;
  if (relative !== null && improvement.interval) return `lift ${lift(relative, improvement.interval)} (${kind} ${liftSpan(improvement.interval)})`;
  const rate = isRate(compareMetric ?? "");
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
      <dt>Decided at look {look.number}, <span class="at">{lastDay(look.end)}</span></dt><dd>{bayesian ? <>observed lift {lift(then.improvement.value, then.improvement.interval)}, chance to beat control {chance(then.chanceToBeatControl)}</> : <>{figures(then, results)}, p = {probability(then.pValue)}</>}</dd>
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
          <div class="scroll" tabIndex={0} role="region" aria-label="Looks">
            <table>
              <thead><tr><th scope="col">Look, date</th><th scope="col">Visitors</th>{several && <th scope="col">Variation</th>}{bayesian ? <><th scope="col">Observed lift</th><th scope="col">Chance to beat control</th><th scope="col">Decided</th></> : <><th scope="col">Lift with {level}{"\u00a0"}% interval</th><th scope="col">p</th><th scope="col">Significant</th></>}</tr></thead>
              <tbody>{looks.flatMap((look) => look.variations.map((v) => {
                const index = variations.findIndex(({ id }) => id === v.id);
                return (
                  <tr key={look.number + " " + v.id} data-look={look.number}>
                    <th scope="row">{look.number}<small>{lastDay(look.end)}</small></th><td><Num value={look.visitors}>{count(look.visitors)}</Num></td>
                    {several && <td><Mark index={index} />{"\u00a0"}{variations[index]?.name}</td>}
                    <td><Shown variation={v} bayesian={bayesian} name={results.compareMetric ?? "goalConversionRate"} /></td>
                    <td>{bayesian ? <Num value={v.chanceToBeatControl}>{chance(v.chanceToBeatControl)}</Num> : <Num value={v.pValue}>{probability(v.pValue)}</Num>}</td>
                    <td>{(bayesian ? conclusion?.look === look.number && conclusion.variationId === v.id : v.significant) ? <b>yes</b> : "no"}</td>
                  </tr>
                );
              }))}</tbody>
            </table>
          </div>
        </details>
      )}
    </>
  );
}
