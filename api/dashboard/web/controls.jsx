// @ts-check
import { useState } from "preact/hooks";
import { ask, query } from "./api.js";
import { count } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Clock, Period } from "./period.jsx";
import { compareMetrics, filters, listed, metrics, numeric } from "./words.js";

/** @import { TargetedEvent } from "preact" */
/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, Goal, ObservedValues, RequestOptions, Response, Subject } from "./types.d.ts" */

const never = 1 << 30;

/** @param {{ label: string, name: string, options: [string, string][], route: Route, go: Go }} props */
const Choice = ({ label, name, options, route, go }) => (
  <label>{label}
    <select name={name} value={route.get(name) || ""} onChange={(e) => go(route.with(name, e.currentTarget.value))}>
      {options.every(([value]) => value !== (route.get(name) || "")) && <option value={route.get(name)}>{route.get(name)}</option>}
      {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
    </select>
  </label>
);

/** named returns the parameter of a filter.
 * @param {string} name */
const named = (name) => `filters[${name}]` + (listed.includes(name) ? "[]" : "");
/** bare returns the filter of a parameter.
 * @param {string} name */
const bare = (name) => name.slice("filters[".length, name.indexOf("]"));
const text = Object.keys(filters).filter((name) => !listed.includes(name) && !numeric.includes(name) && name !== "visitorType");
const dates = ["filters[dateFrom]", "filters[dateTo]"];

/** observed requests the observed values of an attribute, if the server supports it.
 * @param {string} path
 * @param {RequestOptions} options
 * @returns {Promise<Response<ObservedValues>>} */
const observed = (path, options) => ask(path, options).catch((error) => {
  if (error.status === 404 || error.status === 400) return { body: undefined };
  throw error;
});

/** @param {{ subject: Subject, route: Route, go: Go }} props */
function NewFilter({ subject, route, go }) {
  const [name, setName] = useState("device");
  const [value, setValue] = useState("");
  const { body } = useAnswer(numeric.includes(name) ? undefined : subject.path + "/dimensions/" + name + query({ limit: 1000 }), { request: observed, every: never });
  const values = body?.dimension === name ? body.values : undefined;
  const picked = (listed.includes(name) || name === "visitorType") && values;
  /** @param {Event} event */
  const add = (event) => {
    event.preventDefault();
    const key = named(name);
    go(listed.includes(name) ? route.without(key, value).also(key, value) : route.without(key).also(key, value));
    setValue("");
  };
  return (
    <form class="filter" onSubmit={add}>
      <label>Filter by <select value={name} name="by" onChange={(e) => { setName(e.currentTarget.value); setValue(""); }}>{Object.entries(filters).map(([n, text]) => <option key={n} value={n}>{text}</option>)}</select></label>
      {picked ? (
        <label>Value <select name="value" required value={value} onChange={(e) => setValue(e.currentTarget.value)}>
          <option value="">Select …</option>
          {values.filter((v) => v.value).map((v) => <option key={v.value} value={v.value}>{v.value} ({count(v.visitors)})</option>)}
        </select></label>
      ) : (
        <label>Value <input name="value" value={value} onInput={(e) => setValue(e.currentTarget.value)} required={!text.includes(name)} type={numeric.includes(name) ? "number" : "text"} step="any"
          list="observed" placeholder={text.includes(name) ? "empty: not set, *: any" : ""} autocomplete="off" /></label>
      )}
      <datalist id="observed">{!picked && values?.map((v) => <option key={v.value} value={v.value}>{count(v.visitors)} visitors</option>)}</datalist>
      <button type="submit">Add filter</button>
    </form>
  );
}

/** Controls has the goal, metric, dates and filters of a report.
 * @param {{ subject: Subject, route: Route, go: Go, timezone?: string }} props */
export function Controls({ subject, route, go, timezone }) {
  /** @type {Answer<Goal[]>} */
  const goals = useAnswer("/v1/goals" + query([["websiteId", route.get("websiteId")]]), { every: never });
  const offered = compareMetrics[subject.kind];
  const chips = route.filters.filter(([name]) => !dates.includes(name));
  /** @param {string} name @returns {(e: TargetedEvent<HTMLInputElement>) => void} */
  const set = (name) => (e) => go(route.with(name, e.currentTarget.value));
  return (
    <section class="controls" aria-label="Settings">
      <div class="choices">
        <Choice label="Goal" name="goal" route={route} go={go} options={[["", subject.kind === "widget" ? "all goals" : "primary goal"], ...(goals.body || []).map((g) => /** @type {[string, string]} */ ([String(g.id), g.name]))]} />
        {offered.length > 0 && <Choice label="Metric" name="compareMetric" route={route} go={go} options={[["", "default"], ...offered.map((m) => /** @type {[string, string]} */ ([m, metrics[m]]))]} />}
        <Period route={route} go={go} />
        <label>From <input type="date" name="dateFrom" value={route.get(dates[0])?.slice(0, 10) || ""} onChange={set(dates[0])} /></label>
        <label>To (inclusive) <input type="date" name="dateTo" value={route.get(dates[1])?.slice(0, 10) || ""} onChange={set(dates[1])} /></label>
      </div>
      {timezone && (route.get(dates[0]) || route.get(dates[1])) && <Clock timezone={timezone} day={route.get(dates[0])?.slice(0, 10)} />}
      <NewFilter subject={subject} route={route} go={go} />
      {chips.length > 0 && (
        <ul class="chips" aria-label="Filters">
          {chips.map(([name, value]) => (
            <li key={name + value}>{filters[bare(name)] || bare(name)}: {value || "not set"}
              <button type="button" aria-label={`Remove ${filters[bare(name)] || bare(name)} ${value || "not set"}`} onClick={() => go(route.without(name, value))}>×</button></li>
          ))}
          <li><button type="button" onClick={() => go(chips.reduce((r, [n]) => r.without(n), route))}>Remove all</button></li>
        </ul>
      )}
    </section>
  );
}
