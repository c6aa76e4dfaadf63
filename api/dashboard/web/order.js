// @ts-check
// The order and the scale of the segments.
import { bounded } from "./points.js";

/** @import { Effect, Order, Segment } from "./types.d.ts" */

/** Whether the first click on a column sorts in descending order. */
export const first = { value: false, visitors: true, lift: true };

/** @type {Record<"visitors" | "lift", (segment: Segment) => number | null>} */
const keys = { visitors: (s) => s.cell.totals.visitors, lift: (s) => s.comparison.improvement.value };

/** sorted returns the segments in an order. All others together are last, and before them the segments without a number.
 * Equal segments keep their order.
 * @param {Segment[]} segments @param {Order} order */
export function sorted(segments, order) {
  /** @param {boolean} is */
  const others = (is) => segments.filter((s) => (s.cell.value === "(other)") === is);
  return [...inOrder(others(false), order), ...inOrder(others(true), order)];
}

/** @param {Segment[]} segments @param {Order} order */
function inOrder(segments, { by, down }) {
  const sign = down ? -1 : 1;
  if (by === "value") return [...segments].sort((a, b) => sign * (a.cell.label ?? a.cell.value).localeCompare(b.cell.label ?? b.cell.value, "en", { numeric: true }));
  const key = keys[by];
  return [...segments].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return sign * (x - y);
  });
}

/** reach returns the values that the scale of the lifts contains: all lifts, and
 * their intervals up to twice the median width. Longer intervals, of small segments,
 * would hide the others.
 * @param {Effect[]} effects */
export function reach(effects) {
  const intervals = effects.flatMap((e) => (bounded(e.interval) ? [e.interval] : []));
  const widths = intervals.map(([low, high]) => high - low).sort((a, b) => a - b);
  const most = 2 * (widths[Math.floor((widths.length - 1) / 2)] ?? 0.5);
  return effects.flatMap(({ value, interval }) => {
    const middle = value ?? 0;
    return [...(value === null ? [] : [value]), ...(interval ? [Math.max(interval[0] ?? -Infinity, middle - most), Math.min(interval[1] ?? Infinity, middle + most)] : [])];
  });
}
