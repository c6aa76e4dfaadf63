import { chance, isRate, lift, liftSpan, loss } from "./format.js";
import { Axis, tick } from "./forest.jsx";
import { Mark, Num, hue } from "./parts.jsx";
import { scaleOf } from "./scale.js";
import { metrics } from "./words.js";

// sketch draws a bell through what the API tells of the posterior of the lift:
// its centre and the ends of its interval. Each side has its own width.
function sketch({ value, interval }, scale) {
  const steps = 120, path = [];
  for (let i = 0; i <= steps; i++) {
    const x = scale.low + ((scale.high - scale.low) * i) / steps;
    const width = (x < value ? value - interval[0] : interval[1] - value) / 2 || 1e-9;
    path.push(`${((100 * i) / steps).toFixed(2)} ${(58 - 54 * Math.exp(-(((x - value) / width) ** 2) / 2)).toFixed(2)}`);
  }
  return `M0 58L${path.join("L")}L100 58Z`;
}

export function Posterior({ results }) {
  const compared = results.variations.map((v, index) => ({ v, index, c: v.comparison?.bayesian })).filter(({ c }) => c);
  if (compared.length === 0) return null;
  const name = results.compareMetric;
  const drawn = compared.filter(({ v }) => v.comparison.improvement.value !== null && v.comparison.improvement.interval?.every((x) => x !== null));
  const scale = scaleOf([0, ...drawn.flatMap(({ v: { comparison: { improvement: { value, interval } } } }) => [2 * interval[0] - value, 2 * interval[1] - value])]);
  return (
    <section aria-labelledby="posterior">
      <h2 id="posterior">Posterior distribution</h2>
      <p class="quiet">The posterior distribution of each uplift, approximated from its centre and its {results.significanceLevel} % credible interval. Right of the line, the variation is better.</p>
      <div class="forest">
        {drawn.map(({ v, index }) => (
          <div class="row" key={v.id}>
            <span class="who"><Mark index={index} />{"\u00a0"}{v.name}</span>
            <svg class={"posterior " + hue(index)} viewBox="0 0 100 60" preserveAspectRatio="none" height="60" width="100%" role="img"
              aria-label={`${v.name}: uplift ${lift(v.comparison.improvement.value, v.comparison.improvement.interval)}, credible interval ${liftSpan(v.comparison.improvement.interval)}`}>
              <path d={sketch(v.comparison.improvement, scale)} />
              <line class="zero" x1={scale.at(0)} x2={scale.at(0)} y1="0" y2="60" />
            </svg>
          </div>
        ))}
        {drawn.length > 0 && <div class="row"><span /><Axis scale={scale} write={tick} /></div>}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Posterior distribution data">
        <table>
          <thead><tr><th scope="col">Variation</th><th scope="col">Chance to beat control</th><th scope="col">Chance to be best</th><th scope="col">Expected loss if chosen</th><th scope="col">Expected loss if {results.variations[0].name} is kept</th></tr></thead>
          <tbody>{compared.map(({ v, c }) => (
            <tr key={v.id}>
              <th scope="row">{v.name}</th>
              <td><Num value={c.chanceToBeatControl}>{chance(c.chanceToBeatControl)}</Num></td>
              <td><Num value={c.chanceToBeBest}>{chance(c.chanceToBeBest)}</Num></td>
              <td><Num value={c.expectedLoss}>{loss(name, c.expectedLoss)}</Num></td>
              <td><Num value={c.expectedLossControl}>{loss(name, c.expectedLossControl)}</Num></td>
            </tr>
          ))}</tbody>
        </table>
      </div>
      <p class="quiet">The expected loss is the average loss of {metrics[name].toLowerCase()} if the choice is wrong{isRate(name) ? ", in percentage points" : ""}.</p>
    </section>
  );
}
