// @ts-check
import { originOf } from "./changed.jsx";
import { chance, isRate, lift, liftSpan, loss, percent } from "./format.js";
import { Axis, tick } from "./forest.jsx";
import { measureOf } from "./measure.js";
import { DataTable, Mark, Num, Part, hue } from "./parts.jsx";
import { scaleOf } from "./scale.js";

/** @import { Results, Scale } from "./types.d.ts" */

/** sketch draws a bell curve through the centre and the ends of the interval of an
 * lift. The two sides can differ in width.
 * @param {number} value
 * @param {[number, number]} interval
 * @param {Scale} scale */
function sketch(value, interval, scale) {
  const steps = 120, path = [];
  for (let i = 0; i <= steps; i++) {
    const x = scale.low + ((scale.high - scale.low) * i) / steps;
    const width = (x < value ? value - interval[0] : interval[1] - value) / 2 || 1e-9;
    path.push(`${((100 * i) / steps).toFixed(2)} ${(58 - 54 * Math.exp(-(((x - value) / width) ** 2) / 2)).toFixed(2)}`);
  }
  return `M0 58L${path.join("L")}L100 58Z`;
}

/** Posterior shows the posterior distributions of a Bayesian report.
 * @param {{ results: Results }} props */
export function Posterior({ results }) {
  const compared = results.variations.flatMap(({ id, name, comparison: c }, index) => (c?.bayesian ? [{ id, name, index, improvement: c.improvement, bayesian: c.bayesian }] : []));
  if (compared.length === 0) return null;
  const measure = measureOf(results), name = measure.as;
  const prior = compared[0]?.bayesian.prior;
  const drawn = compared.flatMap(({ improvement: { value, interval }, ...v }) => (value !== null && interval?.every((x) => x !== null) ? [{ ...v, value, interval: /** @type {[number, number]} */ (interval) }] : []));
  const scale = scaleOf([0, ...drawn.flatMap(({ value, interval }) => [2 * interval[0] - value, 2 * interval[1] - value])], 8);
  return (
    <Part id="posterior" title="Posterior distribution">
      <p class="quiet">The posterior distribution of each lift, approximated from its centre and its {results.significanceLevel} % credible interval. Right of the line, the variation is better.{prior && ` Before the data, 95 % of all lifts were expected between ${percent(prior.mean - 1.96 * prior.standardDeviation, 1)} and ${percent(prior.mean + 1.96 * prior.standardDeviation, 1)} (the prior, ${originOf(prior)}).`}</p>
      <div class="forest">
        {drawn.map((v) => (
          <div class="row" key={v.id}>
            <span class="who"><Mark index={v.index} />{"\u00a0"}{v.name}</span>
            <svg class={"posterior " + hue(v.index)} viewBox="0 0 100 60" preserveAspectRatio="none" height="60" width="100%" role="img"
              aria-label={`${v.name}: lift ${lift(v.value, v.interval)}, credible interval ${liftSpan(v.interval)}`}>
              <path d={sketch(v.value, v.interval, scale)} />
              <line class="zero" x1={scale.at(0)} x2={scale.at(0)} y1="0" y2="60" />
            </svg>
          </div>
        ))}
        {drawn.length > 0 && <div class="row"><span /><Axis scale={scale} write={tick} /></div>}
      </div>
      <DataTable label="Posterior distribution data" heads={["Variation", "Chance to beat control", "Chance to be best", "Expected lift", ...(prior ? ["Observed lift"] : []), "Expected loss if chosen", `Expected loss if ${results.variations[0].name} is kept`]}>
        {compared.map(({ id, name: variation, improvement, bayesian: c }) => (
          <tr key={id}>
            <th scope="row">{variation}</th>
            <td><Num value={c.chanceToBeatControl}>{chance(c.chanceToBeatControl)}</Num></td>
            <td><Num value={c.chanceToBeBest}>{chance(c.chanceToBeBest)}</Num></td>
            <td><Num value={improvement.value}>{lift(improvement.value, improvement.interval)}</Num> <small>{liftSpan(improvement.interval)}</small></td>
            {prior && <td><Num value={improvement.observed ?? null}>{lift(improvement.observed ?? null, improvement.interval)}</Num></td>}
            <td><Num value={c.expectedLoss}>{loss(name, c.expectedLoss)}</Num></td>
            <td><Num value={c.expectedLossControl}>{loss(name, c.expectedLossControl)}</Num></td>
          </tr>
        ))}
      </DataTable>
      <p class="quiet">The expected loss is the average loss of {results.question?.metric ? measure.name : measure.name.toLowerCase()} if the choice is wrong{isRate(name) ? ", in percentage points" : ""}.</p>
    </Part>
  );
}
