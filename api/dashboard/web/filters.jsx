// @ts-check
import { useId, useState } from "preact/hooks";
import { ask, query } from "./api.js";
import { count } from "./format.js";
import { useAnswer } from "./hooks.js";
import { filters, listed, numeric } from "./words.js";

/** @import { Route } from "./route.js" */
/** @import { Go, ObservedValues, RequestOptions, Response, Subject } from "./types.d.ts" */

const never = 1 << 30;

/** named returns the parameter of a filter.
 * @param {string} name */
const named = (name) => `filters[${name}]` + (listed.includes(name) ? "[]" : "");
/** bare returns the filter of a parameter.
 * @param {string} name */
const bare = (name) => name.slice("filters[".length, name.indexOf("]"));
const text = Object.keys(filters).filter((name) => !listed.includes(name) && !numeric.includes(name) && name !== "visitorType");
export const dates = ["filters[dateFrom]", "filters[dateTo]"];

/** observed requests the observed values of an attribute, if the server supports it.
 * @param {string} path
 * @param {RequestOptions} options
 * @returns {Promise<Response<ObservedValues>>} */
const observed = (path, options) => ask(path, options).catch((error) => {
  if (error.status === 404 || error.status === 400) return { body: undefined };
  throw error;
});

/** NewFilter adds a filter, with the observed values of its attribute.
 * @param {{ subject: Subject, route: Route, go: Go }} props */
export function NewFilter({ subject, route, go }) {
  const list = "observed-" + useId();
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
          list={list} placeholder={text.includes(name) ? "empty: not set, *: any" : ""} autocomplete="off" /></label>
      )}
      <datalist id={list}>{!picked && values?.map((v) => <option key={v.value} value={v.value}>{count(v.visitors)} visitors</option>)}</datalist>
      <button type="submit">Add filter</button>
    </form>
  );
}

/** Chips are the filters of a route, except its dates.
 * @param {{ route: Route, go: Go }} props */
export function Chips({ route, go }) {
  const chips = route.filters.filter(([name]) => !dates.includes(name));
  if (chips.length === 0) return null;
  return (
    <ul class="chips" aria-label="Filters">
      {chips.map(([name, value]) => (
        <li key={name + value}>{filters[bare(name)] || bare(name)}: {value || "not set"}
          <button type="button" aria-label={`Remove ${filters[bare(name)] || bare(name)} ${value || "not set"}`} onClick={() => go(route.without(name, value))}>×</button></li>
      ))}
      <li><button type="button" onClick={() => go(chips.reduce((r, [n]) => r.without(n), route))}>Remove all</button></li>
    </ul>
  );
}

/** described writes the filters of a route as words.
 * @param {Route} route */
export function described(route) {
  const words = route.filters.filter(([name]) => !dates.includes(name)).map(([name, value]) => `${(filters[bare(name)] || bare(name)).toLowerCase()} ${value || "not set"}`);
  return words.join(", ") || "all visitors";
}
