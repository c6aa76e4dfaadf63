// @ts-check
// Computations on the points of a series, without the page.

/** @import { Beam, Entry, Interval, Point, Results } from "./types.d.ts" */

const widths = /** @type {const} */ ({ hour: 3600, day: 86400, week: 604800 });

/** @typedef {keyof typeof widths} Unit */

/** unitOf returns the granularity of at least two points.
 * @param {Point[]} points
 * @returns {Unit} */
export function unitOf(points) {
  const apart = (Date.parse(points[1].time) - Date.parse(points[0].time)) / 1000;
  return apart >= widths.week ? "week" : apart >= widths.day ? "day" : "hour";
}

/** endsOf returns the ends of the buckets in seconds.
 * @param {Point[]} points */
export const endsOf = (points) => points.map((p) => Date.parse(p.time) / 1000);

/** middlesOf returns the middles of the buckets in seconds.
 * @param {Point[]} points */
export const middlesOf = (points) => endsOf(points).map((end) => end - widths[unitOf(points)] / 2);

/** increments returns how much a cumulative count of a variation grew in each bucket.
 * @param {Point[]} points @param {number} id of the variation
 * @param {"visitors" | "convertedVisitors"} name
 * @returns {Entry[]} */
export function increments(points, id, name) {
  let before = 0;
  return points.map((p) => {
    const total = p.variations.find((v) => v.id === id)?.[name];
    if (total === undefined) return undefined;
    const value = total - before;
    before = total;
    return { value, interval: null };
  });
}

/** bounded reports whether an interval has two ends.
 * @param {Interval | null | undefined} interval
 * @returns {interval is [number, number]} */
export const bounded = (interval) => Boolean(interval && interval[0] !== null && interval[1] !== null);

/** Mark is a vertical line of a chart: a look, or the next one. at is in seconds.
 * @typedef {{ number: number, at: number, next: boolean }} Mark */

/** marksOf returns the looks within the points, and the next look if it is not further from
 * the last point than the first point is.
 * @param {Pick<Results, "looks" | "nextLook">} results @param {Point[]} points
 * @returns {Mark[]} */
export function marksOf({ looks = [], nextLook }, points) {
  const [first, last] = endsOf([points[0], points[points.length - 1]]);
  const marks = looks.map(({ number, end }) => ({ number, at: Date.parse(end) / 1000, next: false }));
  if (nextLook) marks.push({ number: nextLook.number, at: Date.parse(nextLook.end) / 1000, next: true });
  return marks.filter(({ at, next }) => at >= first && at <= (next ? 2 * last - first : last));
}

/** beamsOf returns the intervals of the lifts at the looks. Looks without an interval have
 * none.
 * @param {Pick<Results, "looks" | "variations">} results
 * @returns {Beam[]} */
export function beamsOf({ looks = [], variations }) {
  return looks.flatMap(({ end, variations: found }) => found.flatMap(({ id, improvement: { value, interval } }) => (interval ? [{ index: variations.findIndex((v) => v.id === id), at: Date.parse(end) / 1000, value, interval }] : [])));
}

/** extent returns the smallest and the largest number.
 * @param {number[]} numbers
 * @returns {[number, number]} */
const extent = (numbers) => numbers.reduce(([low, high], x) => [Math.min(low, x), Math.max(high, x)], [Infinity, -Infinity]);

/** axisRange returns the range of the value axis, and how many points at the start have
 * an interval or a value outside. The range contains each curve's last interval at three
 * times its width, and the values after the first tenth of the points. Early intervals
 * can be wider; they would flatten the rest of the curve.
 * @param {Entry[][]} curves each with one entry for each point
 * @param {number[]} [marks] other values that the range contains
 * @returns {{ low: number, high: number, outside: number }} */
export function axisRange(curves, marks = []) {
  const all = curves.map((curve) => curve.flatMap((e) => (e ? [e.value, ...(e.interval ?? [])].filter((x) => x !== null) : [])));
  const [least, most] = extent([...all.flat(), ...marks]);
  if (least > most) return { low: 0, high: 1, outside: 0 };
  const near = [...marks];
  for (const curve of curves) {
    near.push(...curve.slice(Math.floor(curve.length / 10)).flatMap((e) => (e && e.value !== null ? [e.value] : [])));
    const last = curve.flatMap((e) => (bounded(e?.interval) ? [e.interval] : [])).at(-1);
    if (last) near.push(2 * last[0] - last[1], 2 * last[1] - last[0]);
  }
  let [low, high] = extent(near.length > marks.length ? near : [least, most]);
  [low, high] = [Math.max(low, least), Math.min(high, most)];
  if (low === high) [low, high] = low === 0 ? [0, 1] : [Math.min(0, 2 * low), Math.max(0, 2 * high)];
  const margin = (high - low) / 20;
  const within = /** @param {Entry} e */ (e) => !e || [e.value, ...(e.interval ?? [])].every((x) => x === null || (x >= low && x <= high));
  const outside = curves.flatMap((curve) => curve.map((e, i) => (within(e) ? 0 : i + 1))).reduce((a, b) => Math.max(a, b), 0);
  return { low: low < 0 || least < 0 ? low - margin : Math.max(0, low - margin), high: high + margin, outside };
}
