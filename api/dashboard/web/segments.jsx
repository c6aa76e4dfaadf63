// @ts-check
import { useEffect, useState } from "preact/hooks";
import { ask, query } from "./api.js";
import { compared, joined } from "./conditions.js";
import { text } from "./format.js";
import { Help } from "./help.jsx";
import { useAnswer } from "./hooks.js";
import { measureOf } from "./measure.js";
import { Empty, Fault, Loading } from "./parts.jsx";
import { follow } from "./route.js";
import { Rows, segmentsOf } from "./rows.jsx";
import { filters, labelOf, listed } from "./words.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, Link, Results, Subject } from "./types.d.ts" */

/** The attributes of a visitor's first view. */
const dimensions = ["device", "country", "channel", "referrer", "browser", "os", "region", "city", "utmSource", "utmMedium", "utmCampaign", "utmContent", "utmTerm", "firstVisitPage", "visitorType"];


/** narrow returns a link that filters by a value of each attribute of a breakdown, if there are such filters.
 * @param {Route} route @param {Go} go @param {string[]} attributes @param {string[]} values
 * @returns {Link | undefined} */
function narrow(route, go, attributes, values) {
  /** @type {Route | undefined} */
  let next = route.without("dimension");
  attributes.forEach((name, i) => { next = next && narrowed(next, name, values[i]); });
  return next && follow(go, next.address);
}

/** narrowed returns a route with a filter by a value of an attribute, if there is such a filter.
 * @param {Route} route @param {string} attribute @param {string} value */
function narrowed(route, attribute, value) {
  const list = listed.includes(attribute), name = `filters[${attribute}]` + (list ? "[]" : ""), text = value === "(none)" ? "" : value;
  if (value === "(other)") return undefined;
  if (!(attribute in filters)) return value.includes("*") ? undefined : route.with("visitors", joined(route.get("visitors"), compared(attribute, text, false)));
  return value === "*" && !list ? undefined : route.without(name).also(name, text);
}

/** Breakdown is the table of the segments.
 * @param {{ results: Results, route: Route, go: Go }} props */
function Breakdown({ results, route, go }) {
  const attributes = (results.dimension ?? "").split(",");
  return <Rows segments={segmentsOf(results)} results={results} measure={measureOf(results)} what={attributes.map(labelOf).join(" · ")} label="segments"
    linkOf={({ cell }) => narrow(route, go, attributes, cell.values ?? [cell.value])} />;
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

/** Attributes are the fields that choose one or two attributes. asked are those of the view.
 * @param {{ asked: string[], own: string[], choose: (dimension: string) => void }} props */
function Attributes({ asked: [one, other = ""], own, choose }) {
  /** @param {string[]} names */
  const options = (names) => [...new Set([...names, ...dimensions, ...own])].map((n) => <option key={n} value={n}>{labelOf(n)}</option>);
  return (
    <div class="checkboxes">
      <label class="inline">Break down by <select name="dimension" value={one} onChange={(e) => choose([e.currentTarget.value, other].filter((n, i, all) => n && all.indexOf(n) === i).join(","))}>{options(one ? [one] : [])}</select></label>
      <label class="inline">and by <select name="dimension2" value={other} onChange={(e) => choose([one, e.currentTarget.value].filter(Boolean).join(","))}><option value="">–</option>{options(other ? [other] : []).filter((o) => o.key !== one)}</select></label>
    </div>
  );
}

/** Segments breaks the report down by attributes of the visitors' first views, at first by the one that differs most.
 * @param {{ subject: Subject, route: Route, go: Go, own: string[] }} props */
export function Segments({ subject, route, go, own }) {
  /** @param {string} dimension */
  const path = (dimension) => subject.path + "/results" + query([...route.asked.filter(([n]) => n !== "dimension"), ["dimension", dimension]]);
  const free = candidates.filter((d) => route.filters.every(([n]) => !n.startsWith(`filters[${d}]`)));
  const most = useMostDifferent(route.get("dimension"), path, free.length > 0 ? free : candidates), asked = most?.dimension ?? "";
  /** @type {Answer<Results>} */
  const { body: results, error, again } = useAnswer(most && path(asked), { every: 30000 });
  const ready = results?.dimension === asked && results.breakdown, different = ready && results.heterogeneity;
  return (
    <section aria-labelledby="segments" aria-busy={!ready && !error}>
      <div class="head"><h2><span id="segments">Segments</span><Help of="segments" />{results && <small>{measureOf(results).name}</small>}</h2>
      <Attributes asked={asked.split(",")} own={own} choose={(dimension) => go(route.with("dimension", dimension))} /></div>
      {error && <Fault error={error} again={again} reset={follow(go, route.without("dimension").address)} />}
      {!ready && !error && <div class="segments-room"><Loading what="the segments" /></div>}
      {different && <p id="differ">{text(different.text)}{most && most.of > 1 && <span class="quiet"> Of {most.of} attributes this one differs most, which chance favours: {different.pValue === undefined ? "divide the factor" : "multiply p"} by {most.of}.</span>}</p>}
      {ready && (results.breakdown?.length ? <Breakdown {...{ results, route, go }} /> : <Empty>No visitors to break down.</Empty>)}
    </section>
  );
}
