// A scale maps numbers onto per cent of a drawing's width.

export function scaleOf(numbers, pieces = 5) {
  const finite = numbers.filter((x) => Number.isFinite(x));
  let low = Math.min(...finite), high = Math.max(...finite);
  if (!(high > low)) { low -= 0.5; high += 0.5; }
  const margin = (high - low) * 0.06;
  low -= margin;
  high += margin;
  const step = stepOf((high - low) / pieces);
  const at = (x) => (100 * (x - low)) / (high - low);
  return { low, high, at, clip: (x, open) => Math.min(Math.max(at(x ?? open), 0), 100), step, ticks: ticks(low, high, step) };
}

// stepOf is the next round number.
function stepOf(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((m) => power * m >= rough);
}

function ticks(low, high, step) {
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(i * step);
  return found;
}
