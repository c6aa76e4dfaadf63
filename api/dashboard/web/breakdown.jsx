// @ts-check
import { count, metric } from "./format.js";
import { Axis, ForestRow, liftScale, tick } from "./forest.jsx";
import { Empty, Mark, Num } from "./parts.jsx";
import { DecidedOn, Verdict } from "./table.jsx";
import { metrics } from "./words.js";

/** @import { Link, Results } from "./types.d.ts" */

/** Breakdown shows a small chart for each value of the dimension, on a common scale.
 * @param {{ results: Results, narrow: (value: string) => Link | undefined }} props */
export function Breakdown({ results, narrow }) {
  const cells = results.breakdown;
  if (!cells) return null;
  const name = results.compareMetric || "goalConversionRate";
  const comparisons = cells.flatMap((cell) => cell.variations.flatMap(({ comparison: c }) => (c && (c.improvement.value !== null || c.improvement.interval) ? [c] : [])));
  const scale = comparisons.length ? liftScale(comparisons, { wide: false }) : undefined;
  return (
    <section aria-labelledby="breakdown">
      <h2 id="breakdown">By {results.dimension}</h2>
      {cells.length === 0 && <Empty>No visitors to break down.</Empty>}
      <ul class="multiples">
        {cells.map((cell) => (
          <li key={cell.value} data-value={cell.value}>
            <h3>{cell.value}</h3>
            <p class="quiet"><Num value={cell.totals.visitors}>{count(cell.totals.visitors)}</Num> visitors
              {narrow(cell.value) && <> · <a {...narrow(cell.value)}>show only this</a></>}</p>
            {cell.variations.map((v, index) => (
              <div class="multiple" key={v.id}>
                <span><Mark index={index} />{"\u00a0"}{v.name} <b><Num value={v.metrics[name].value}>{metric(name, v.metrics[name].value, v.metrics[name].interval)}</Num></b></span>
                {v.comparison && <Verdict comparison={v.comparison} conclusion={cell.conclusion} />}
                <DecidedOn variation={v} conclusion={cell.conclusion} />
                {v.comparison && scale && <ForestRow scale={scale} comparison={v.comparison} index={index} name={`${cell.value}, ${v.name}`} />}
              </div>
            ))}
            {scale && <Axis scale={scale} write={tick} />}
          </li>
        ))}
      </ul>
      <p class="quiet">Numbers: {metrics[name].toLowerCase()}. Bars: uplift over {results.variations[0]?.name}, on a common scale.</p>
    </section>
  );
}
