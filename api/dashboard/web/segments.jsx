// @ts-check
import { useState } from "preact/hooks";
import { query } from "./api.js";
import { everybody } from "./compare.jsx";
import { count, lift, liftSpan, metric } from "./format.js";
import { Axis, ForestRow, tick } from "./forest.jsx";
import { Help } from "./help.jsx";
import { useAnswer } from "./hooks.js";
import { Empty, Fault, Loading, Mark, Num } from "./parts.jsx";
import { follow } from "./route.js";
import { scaleOf } from "./scale.js";
import { first, reach, sorted } from "./order.js";
import { Cell, DecidedOn, Verdict } from "./table.jsx";
import { filters, listed, nameOf, why } from "./words.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, Link, Order, Results, Segment, Subject } from "./types.d.ts" */

/** The attributes of a visitor's first view and their labels.
 * @type {[string, string][]} */
const dimensions = ["device", "country", "channel", "referrer", "browser", "os", "region", "city", "utmSource", "utmMedium", "utmCampaign", "utmContent", "utmTerm", "firstVisitPage", "visitorType"]
  .map((name) => [name, filters[name] ?? "Channel"]);

/** narrow returns a link that filters by a value of an attribute, if there is such a
 * filter.
 * @param {Route} route @param {Go} go @param {string} dimension @param {string} value
 * @returns {Link | undefined} */
function narrow(route, go, dimension, value) {
  const list = listed.includes(dimension);
  if (!(dimension in filters) || value === "(other)" || (value === "*" && !list)) return undefined;
  const name = `filters[${dimension}]` + (list ? "[]" : "");
  return follow(go, route.without("dimension").without(name).also(name, value === "(none)" ? "" : value).address);
}

/** segmentsOf returns a row for each value and compared variation.
 * @param {Results} results
 * @returns {Segment[]} */
function segmentsOf(results) {
  return (results.breakdown ?? []).flatMap((cell) => {
    const control = cell.variations.find((v) => v.control) ?? cell.variations[0];
    return cell.variations.flatMap((variation, index) => (variation.comparison ? [{ cell, control, variation, comparison: variation.comparison, index }] : []));
  });
}

/** @param {{ label: string, by: Order["by"], order: Order, sort: (order: Order) => void, class?: string }} props */
function Sortable({ label, by, order, sort, class: name }) {
  const chosen = order.by === by, sign = chosen ? (order.down ? "▼" : "▲") : "↕";
  return (
    <th role="columnheader" scope="col" class={name} aria-sort={chosen ? (order.down ? "descending" : "ascending") : "none"}>
      <button type="button" class="sort" onClick={() => sort({ by, down: chosen ? !order.down : first[by] })}>{label} <span aria-hidden="true">{sign}</span></button>
    </th>
  );
}

/** Row shows a variation among the visitors with one value.
 * @param {{ segment: Segment, results: Results, several: boolean, scale: ReturnType<typeof scaleOf>, link?: Link }} props */
function Row({ segment: { cell, control, variation: v, comparison: c, index }, results, several, scale, link }) {
  const name = results.compareMetric || "goalConversionRate", was = control.metrics[name], is = v.metrics[name];
  return (
    <tr role="row" data-value={cell.value} data-variation-id={v.id}>
      <th role="rowheader" scope="row">{cell.value} {link && <a class="narrow" {...link}>show only this</a>}{several && <small><Mark index={index} />{"\u00a0"}{v.name}</small>}</th>
      <Cell label="Visitors" class="n"><Num value={v.visitors}>{count(v.visitors)}</Num><small>and <Num value={control.visitors}>{count(control.visitors)}</Num></small></Cell>
      <Cell label={control.name} class="n"><Num value={was.value}>{metric(name, was.value, was.interval)}</Num></Cell>
      <Cell label={several ? "Variation" : v.name} class="n"><Num value={is.value}>{metric(name, is.value, is.interval)}</Num></Cell>
      <Cell label="Uplift" class="n two"><b><Num value={c.improvement.value}>{lift(c.improvement.value, c.improvement.interval)}</Num></b> <small>{c.improvement.interval ? liftSpan(c.improvement.interval) : c.improvement.reason && why(c.improvement.reason)}</small></Cell>
      <Cell label="Interval" class="wide"><ForestRow scale={scale} comparison={{ ...c, sequential: undefined }} index={index} name={`${cell.value}, ${v.name}`} /></Cell>
      <Cell label="Verdict" class="two"><Verdict comparison={c} conclusion={cell.conclusion} /><DecidedOn variation={v} conclusion={cell.conclusion} /></Cell>
    </tr>
  );
}

/** Rows is the table, on a common scale of uplifts.
 * @param {{ results: Results, route: Route, go: Go }} props */
function Rows({ results, route, go }) {
  const [order, sort] = useState(/** @type {Order} */ ({ by: "visitors", down: true }));
  const dimension = results.dimension ?? "", segments = segmentsOf(results), [control, ...others] = results.variations;
  const several = others.length > 1;
  const scale = scaleOf([0, ...reach(segments.map((s) => s.comparison.improvement))], 4);
  const name = nameOf(results.compareMetric, results.conversionWindow);
  return (
    <>
      <table class="cards segments" role="table" aria-labelledby="segments">
        <thead role="rowgroup"><tr role="row">
          <Sortable label={dimensions.find(([n]) => n === dimension)?.[1] ?? dimension} by="value" {...{ order, sort }} />
          <Sortable label="Visitors" by="visitors" class="n" {...{ order, sort }} />
          <th role="columnheader" scope="col" class="n"><span class="hidden">{name}, </span>{control.name}</th>
          <th role="columnheader" scope="col" class="n"><span class="hidden">{name}, </span>{several ? "Variation" : others[0]?.name}</th>
          <Sortable label="Uplift" by="uplift" class="n" {...{ order, sort }} />
          <th role="columnheader" scope="col">Uplift with {results.significanceLevel}{"\u00a0"}% interval</th>
          <th role="columnheader" scope="col">Verdict<Help of="verdict" /></th>
        </tr></thead>
        <tbody role="rowgroup">
          {sorted(segments, order).map((s) => <Row key={`${s.cell.value} ${s.variation.id}`} segment={s} {...{ results, several, scale }} link={narrow(route, go, dimension, s.cell.value)} />)}
        </tbody>
        <tfoot role="rowgroup"><tr role="row"><td role="cell" colSpan={5} /><Cell label="Scale" class="wide"><Axis scale={scale} write={tick} /></Cell><td role="cell" /></tr></tfoot>
      </table>
    </>
  );
}

/** Segments breaks the report down by an attribute of the visitors' first views, at first by device.
 * @param {{ subject: Subject, route: Route, go: Go }} props */
export function Segments({ subject, route, go }) {
  const asked = route.get("dimension") ?? dimensions[0][0];
  /** @type {Answer<Results>} */
  const { body: results, error, again } = useAnswer(subject.path + "/results" + query([...route.asked.filter(([n]) => n !== "dimension"), ["dimension", asked]]), { every: 30000 });
  const ready = results?.dimension === asked && results.breakdown;
  return (
    <section aria-labelledby="segments" aria-busy={!ready && !error}>
      <div class="head"><h2><span id="segments">Segments</span><Help of="segments" />{results && <small>{nameOf(results.compareMetric, results.conversionWindow)}</small>}</h2>
      <label class="inline">Break down by <select name="dimension" value={asked} onChange={(e) => go(route.with("dimension", e.currentTarget.value === dimensions[0][0] ? "" : e.currentTarget.value))}>
        {dimensions.every(([n]) => n !== asked) && <option value={asked}>{asked}</option>}
        {dimensions.map(([n, label]) => <option key={n} value={n}>{label}</option>)}
      </select></label>
      {route.get("versus") === undefined && <button type="button" id="versus" onClick={() => go(route.with("versus", everybody))}>Compare with another segment</button>}</div>
      {error && <Fault error={error} again={again} reset={follow(go, route.without("dimension").address)} />}
      {!ready && !error && <div class="segments-room"><Loading what="the segments" /></div>}
      {ready && (results.breakdown?.length ? <Rows {...{ results, route, go }} /> : <Empty>No visitors to break down.</Empty>)}
    </section>
  );
}
