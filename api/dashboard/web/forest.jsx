// @ts-check
import { lift, liftSpan } from "./format.js";
import { hue } from "./parts.jsx";
import { bounded } from "./points.js";
import { scaleOf } from "./scale.js";

/** @import { Comparison, Interval, Results, Scale } from "./types.d.ts" */

/** liftScale returns a scale that contains the intervals of the single tests. Wider
 * intervals of the last look may exceed the scale; an arrow marks the cut end. Those beside
 * credible intervals, which a prior makes shorter, do not count at all.
 * @param {Comparison[]} comparisons
 * @param {number[]} [margins] of guardrails */
export function liftScale(comparisons, margins = []) {
  /** @type {(number | null)[]} */
  const ends = [0, ...margins];
  for (const c of comparisons) {
    const { value, interval } = c.improvement;
    ends.push(value, ...(interval || []));
    const look = !c.bayesian && c.sequential?.improvement;
    if (look && bounded(interval)) {
      const reach = interval[1] - interval[0];
      ends.push(look[0] === null ? interval[0] - reach : Math.max(look[0], interval[0] - reach));
      ends.push(look[1] === null ? interval[1] + reach : Math.min(look[1], interval[1] + reach));
    }
  }
  return scaleOf(ends, 6);
}

/** @param {{ scale: Scale, interval: Interval | null, y: number, thin?: boolean }} props */
function Span({ scale, interval, y, thin }) {
  if (!interval) return null;
  const low = scale.clip(interval[0], -Infinity), high = scale.clip(interval[1], Infinity);
  const name = thin ? "thin" : "thick";
  /** @param {number} x @param {boolean} cut */
  const end = (x, cut) => cut ? null : <line class={name} x1={x + "%"} x2={x + "%"} y1={y - 4} y2={y + 4} />;
  const cutLow = interval[0] === null || interval[0] < scale.low, cutHigh = interval[1] === null || interval[1] > scale.high;
  return (
    <g>
      <line class={name} x1={low + "%"} x2={high + "%"} y1={y} y2={y} />
      {end(low, cutLow)}{end(high, cutHigh)}
      {cutLow && <text x="0" y={y + 4} class="cut">‹</text>}
      {cutHigh && <text x="100%" y={y + 4} class="cut" text-anchor="end">›</text>}
    </g>
  );
}

/** ForestRow shows a lift with its interval, that of the last look, and the margin of a
 * guardrail.
 * @param {{ scale: Scale, comparison: Comparison, index: number, name: string, margin?: number }} props */
export function ForestRow({ scale, comparison, index, name, margin }) {
  const { value, interval } = comparison.improvement;
  const look = comparison.sequential?.improvement;
  const y = look ? 11 : 16;
  return (
    <svg class={"forest-row " + hue(index)} height="32" width="100%" role="img" aria-label={`${name}: lift ${lift(value, interval)}, interval ${liftSpan(interval)}${margin === undefined ? "" : `, margin ${tick(margin)}`}`}>
      <line class="zero" x1={scale.at(0) + "%"} x2={scale.at(0) + "%"} y1="0" y2="32" />
      {margin !== undefined && <line class="margin" x1={scale.at(margin) + "%"} x2={scale.at(margin) + "%"} y1="0" y2="32" />}
      <Span scale={scale} interval={interval} y={y} />
      {value !== null && <circle cx={scale.clip(value) + "%"} cy={y} r="5" />}
      {look && <Span scale={scale} interval={look} y={24} thin />}
    </svg>
  );
}

/** @param {{ scale: Scale, write: (x: number) => string }} props */
export function Axis({ scale, write }) {
  return (
    <svg class="axis" height="22" width="100%" aria-hidden="true">
      {scale.ticks.map((x) => (
        <g key={x} class={scale.ticks.length > 3 && Math.round(x / scale.step) % 2 ? "odd" : undefined}>
          <line x1={scale.at(x) + "%"} x2={scale.at(x) + "%"} y1="0" y2="4" />
          <text x={scale.at(x) + "%"} y="18" text-anchor={scale.at(x) > 94 ? "end" : scale.at(x) < 6 ? "start" : "middle"}>{write(x)}</text>
        </g>
      ))}
    </svg>
  );
}

/** tick formats a fraction at an axis.
 * @param {number} x */
export const tick = (x) => (x > 0 ? "+" : "") + Number((100 * x).toFixed(3)) + "\u00a0%";

/** comparedOf returns the variations that are compared with control.
 * @param {Results} results */
export const comparedOf = (results) => results.variations.flatMap(({ id, name, comparison }, index) => (comparison ? [{ id, name, comparison, index }] : []));
