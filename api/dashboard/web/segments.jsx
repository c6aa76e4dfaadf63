// @ts-check
import { useEffect, useState } from "preact/hooks";
import { ask, query } from "./api.js";
import { count, metric, points, pointsSpan, text } from "./format.js";
import { Axis, ForestRow, tick } from "./forest.jsx";
import { Help } from "./help.jsx";
import { useAnswer } from "./hooks.js";
import { Empty, Fault, Loading, Mark, Num } from "./parts.jsx";
import { follow } from "./route.js";
import { scaleOf } from "./scale.js";
import { first, reach, sorted } from "./order.js";
import { Cell, Lift, Verdict } from "./table.jsx";
import { filters, listed, nameOf, liftIn } from "./words.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Complement, Go, Link, Order, Results, Segment, Subject } from "./types.d.ts" */

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

/** Minus is the lift of a segment minus that of all other visitors.
 * @param {{ complement: Complement | undefined }} props */
export function Minus({ complement }) {
  const { value, interval } = complement?.improvementDifference ?? { value: null, interval: null };
  return <><Num value={value}>{points(value, interval)}</Num> {interval && <small>{pointsSpan(interval)}</small>}</>;
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
      <Cell label={liftIn(results)} class="n two"><Lift effect={c.improvement} /></Cell>
      <Cell label="Interval" class="wide"><ForestRow scale={scale} comparison={{ ...c, sequential: undefined }} index={index} name={`${cell.value}, ${v.name}`} /></Cell>
      <Cell label="Minus others" class="n"><Minus complement={c.complement} /></Cell>
      <Cell label="Verdict" class="two"><Verdict comparison={c} /></Cell>
    </tr>
  );
}

/** Rows is the table, on a common scale of lifts.
 * @param {{ results: Results, route: Route, go: Go }} props */
function Rows({ results, route, go }) {
  const [order, sort] = useState(/** @type {Order} */ ({ by: "visitors", down: true }));
  const dimension = results.dimension ?? "", segments = segmentsOf(results), [control, ...others] = results.variations;
  const several = others.length > 1;
  const scale = scaleOf([0, ...reach(segments.map((s) => s.comparison.improvement))], 6);
  const name = nameOf(results.compareMetric, results.conversionWindow);
  return (
    <>
      <table class="cards segments" role="table" aria-labelledby="segments">
        <thead role="rowgroup"><tr role="row">
          <Sortable label={dimensions.find(([n]) => n === dimension)?.[1] ?? dimension} by="value" {...{ order, sort }} />
          <Sortable label="Visitors" by="visitors" class="n" {...{ order, sort }} />
          <th role="columnheader" scope="col" class="n"><span class="hidden">{name}, </span>{control.name}</th>
          <th role="columnheader" scope="col" class="n"><span class="hidden">{name}, </span>{several ? "Variation" : others[0]?.name}</th>
          <Sortable label={liftIn(results)} by="lift" class="n" {...{ order, sort }} />
          <th role="columnheader" scope="col">with {results.significanceLevel}{"\u00a0"}% interval</th>
          <th role="columnheader" scope="col" class="n">Minus others<Help of="complement" /></th>
          <th role="columnheader" scope="col">Verdict<Help of="verdict" /></th>
        </tr></thead>
        <tbody role="rowgroup">
          {sorted(segments, order).map((s) => <Row key={`${s.cell.value} ${s.variation.id}`} segment={s} {...{ results, several, scale }} link={narrow(route, go, dimension, s.cell.value)} />)}
        </tbody>
        <tfoot role="rowgroup"><tr role="row"><td role="cell" colSpan={5} /><Cell label="Scale" class="wide"><Axis scale={scale} write={tick} /></Cell><td role="cell" colSpan={2} /></tr></tfoot>
      </table>
    </>
  );
}

/** The attributes that are compared before one is chosen: those with few values. */
const candidates = ["device", "visitorType", "channel", "os", "browser", "country"];

/** useMostDifferent returns the candidate between whose values the lift differs most, once, and how many were compared.
 * If chance explains as much among so many, it is the first one, the device.
 * @param {string | undefined} chosen attribute: nothing is compared
 * @param {(dimension: string) => string} path of the breakdown by an attribute
 * @param {string[]} offered */
function useMostDifferent(chosen, path, offered) {
  const [found, set] = useState(/** @type {{ key: string, dimension: string, of: number } | undefined} */ (undefined)), key = path("");
  useEffect(() => {
    if (chosen || found?.key === key) return undefined;
    const aborted = new AbortController();
    Promise.all(offered.map((dimension) => ask(path(dimension), { signal: aborted.signal }).then(({ body }) => ({ dimension, factor: body.heterogeneity?.bayesFactor ?? 0 }), () => ({ dimension, factor: 0 })))).then((all) => {
      const of = all.filter((a) => a.factor > 0).length, best = all.reduce((a, b) => (b.factor > a.factor ? b : a));
      if (!aborted.signal.aborted) set(best.factor > of ? { key, dimension: best.dimension, of } : { key, dimension: offered[0], of: 1 });
    });
    return () => aborted.abort();
  }, [chosen, key]);
  return chosen ? { dimension: chosen, of: 1 } : found?.key === key ? found : undefined;
}

/** Segments breaks the report down by an attribute of the visitors' first views, at first by the one that differs most.
 * @param {{ subject: Subject, route: Route, go: Go }} props */
export function Segments({ subject, route, go }) {
  /** @param {string} dimension */
  const path = (dimension) => subject.path + "/results" + query([...route.asked.filter(([n]) => n !== "dimension"), ["dimension", dimension]]);
  const free = candidates.filter((d) => route.filters.every(([n]) => !n.startsWith(`filters[${d}]`)));
  const most = useMostDifferent(route.get("dimension"), path, free.length > 0 ? free : candidates), asked = most?.dimension ?? "";
  /** @type {Answer<Results>} */
  const { body: results, error, again } = useAnswer(most && path(asked), { every: 30000 });
  const ready = results?.dimension === asked && results.breakdown, different = ready && results.heterogeneity;
  return (
    <section aria-labelledby="segments" aria-busy={!ready && !error}>
      <div class="head"><h2><span id="segments">Segments</span><Help of="segments" />{results && <small>{nameOf(results.compareMetric, results.conversionWindow)}</small>}</h2>
      <label class="inline">Break down by <select name="dimension" value={asked} onChange={(e) => go(route.with("dimension", e.currentTarget.value))}>
        {dimensions.every(([n]) => n !== asked) && <option value={asked}>{asked}</option>}
        {dimensions.map(([n, label]) => <option key={n} value={n}>{label}</option>)}
      </select></label></div>
      {error && <Fault error={error} again={again} reset={follow(go, route.without("dimension").address)} />}
      {!ready && !error && <div class="segments-room"><Loading what="the segments" /></div>}
      {different && <p id="differ">{text(different.text)}{most && most.of > 1 && <span class="quiet"> Of {most.of} attributes this one differs most, which chance favours: {different.pValue === undefined ? "divide the factor" : "multiply p"} by {most.of}.</span>}</p>}
      {ready && (results.breakdown?.length ? <Rows {...{ results, route, go }} /> : <Empty>No visitors to break down.</Empty>)}
    </section>
  );
}
