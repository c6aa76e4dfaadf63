// @ts-check
import { query } from "./api.js";
import { Chips, NewFilter, dates, described } from "./filters.jsx";
import { Axis, ForestRow, liftScale, tick } from "./forest.jsx";
import { count, lift, liftSpan, metric } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Fault, Loading, Mark, Num } from "./parts.jsx";
import { Route } from "./route.js";
import { Cell, Verdict } from "./table.jsx";
import { nameOf, why } from "./words.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Go, Results, Scale, Subject } from "./types.d.ts" */

/** everybody is the segment without filters in the parameter versus. */
export const everybody = "all";

/** Row is a variation in one of the segments.
 * @param {{ segment: string, results: Results, index: number, scale: Scale }} props */
function Row({ segment, results, index, scale }) {
  const name = results.compareMetric || "goalConversionRate", control = results.variations[0], own = results.variations[index], c = own.comparison;
  if (!c) return null;
  return (
    <tr role="row" data-segment={segment}>
      <th role="rowheader" scope="row">{segment}<small><Mark index={index} />{"\u00a0"}{own.name}</small></th>
      <Cell label="Visitors" class="n"><Num value={own.visitors}>{count(own.visitors)}</Num><small><Num value={control.visitors}>{count(control.visitors)}</Num> in {control.name}</small></Cell>
      <Cell label={control.name} class="n"><Num value={control.metrics[name].value}>{metric(name, control.metrics[name].value, control.metrics[name].interval)}</Num></Cell>
      <Cell label={own.name} class="n"><Num value={own.metrics[name].value}>{metric(name, own.metrics[name].value, own.metrics[name].interval)}</Num></Cell>
      <Cell label="Uplift" class="n two"><b><Num value={c.improvement.value}>{lift(c.improvement.value, c.improvement.interval)}</Num></b><small>{c.improvement.reason ? why(c.improvement.reason) : liftSpan(c.improvement.interval)}</small></Cell>
      <Cell label="Intervals" class="wide"><ForestRow scale={scale} comparison={c} index={index} name={`${segment}, ${own.name}`} /></Cell>
      <Cell label="Verdict" class="two"><Verdict comparison={c} conclusion={results.conclusion} /></Cell>
    </tr>
  );
}

/** Compare shows the report of the current filters beside that of another segment, which
 * has the same goal, metric and dates.
 * @param {{ subject: Subject, results: Results, route: Route, go: Go }} props */
export function Compare({ subject, results, route, go }) {
  const versus = route.get("versus");
  const other = new Route(versus === everybody ? "" : versus ?? "");
  const shared = route.asked.filter(([n]) => n !== "dimension" && (!n.startsWith("filters[") || dates.includes(n)));
  const path = versus !== undefined && subject.path + "/results" + query([...shared, ...other.filters]);
  /** @type {Answer<Results>} */
  const { body, error, again } = useAnswer(path);
  if (versus === undefined) return null;
  /** @type {Go} */
  const change = (next) => go(route.with("versus", (typeof next === "string" ? next : next.address).slice(2) || everybody));
  const both = [[described(route), results], ...(body ? [[described(other), body]] : [])].map(([segment, r]) => ({ segment: String(segment), results: /** @type {Results} */ (r) }));
  const scale = liftScale(both.flatMap(({ results: r }) => r.variations.flatMap((v) => v.comparison ?? [])));
  const name = nameOf(results.compareMetric, results.conversionWindow), heads = ["Segment", "Visitors", results.variations[0].name, "Variation", "Uplift", "Uplift with intervals", "Verdict"];
  return (
    <section aria-labelledby="compare">
      <div class="head"><h2 id="compare">{name}: {described(route)} against {described(other)}</h2><button type="button" onClick={() => go(route.without("versus"))}>Close comparison</button></div>
      <div class="controls"><NewFilter subject={subject} route={other} go={change} /><Chips route={other} go={change} /></div>
      {error && <Fault error={error} again={again} />}
      {!body && !error && <Loading what="the other segment" />}
      <table class="cards" role="table" aria-labelledby="compare">
        <thead role="rowgroup"><tr role="row">{heads.map((h, i) => <th key={h} role="columnheader" scope="col" class={i > 0 && i < 5 ? "n" : undefined}>{h}</th>)}</tr></thead>
        <tbody role="rowgroup">{results.variations.flatMap((_, index) => both.map(({ segment, results: r }, i) => r.variations[index] && <Row key={index + " " + i} {...{ segment, index, scale }} results={r} />))}</tbody>
        <tfoot role="rowgroup"><tr role="row"><td role="cell" colSpan={5} /><Cell label="Scale" class="wide"><Axis scale={scale} write={tick} /></Cell><td role="cell" /></tr></tfoot>
      </table>
      <p class="quiet">Two verdicts that differ do not show that the segments differ. Each verdict is that of its own visitors.</p>
    </section>
  );
}
