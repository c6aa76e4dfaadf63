// @ts-check
/** scaleOf returns a scale that maps numbers to percentages of the width of a drawing.
 * @param {(number | null | undefined)[]} numbers
 * @param {number} [pieces] approximate number of ticks */
export function scaleOf(numbers, pieces = 5) {
  const finite = /** @type {number[]} */ (numbers.filter(Number.isFinite));
  let low = Math.min(...finite), high = Math.max(...finite);
  if (!(high > low)) { low -= 0.5; high += 0.5; }
  const margin = (high - low) * 0.06;
  low -= margin;
  high += margin;
  const step = stepOf((high - low) / pieces);
  /** @param {number} x */
  const at = (x) => (100 * (x - low)) / (high - low);
  /** @param {number | null} x @param {number} [open] position of null */
  const clip = (x, open = 0) => Math.min(Math.max(at(x ?? open), 0), 100);
  return { low, high, at, clip, step, ticks: ticks(low, high, step) };
}

/** stepOf rounds up to 1, 2 or 5 times a power of 10.
 * @param {number} rough */
function stepOf(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5].find((m) => power * m >= rough) ?? 10);
}

/** @param {number} low @param {number} high @param {number} step */
function ticks(low, high, step) {
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(i * step);
  return found;
}
