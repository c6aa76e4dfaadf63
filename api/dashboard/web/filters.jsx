// @ts-check
import { useId, useState } from "preact/hooks";
import { ask, query } from "./api.js";
import { compared, joined, termsOf, worded } from "./conditions.js";
import { count } from "./format.js";
import { useAnswer } from "./hooks.js";
import { dates } from "./period.jsx";
import { filters, labelOf, listed, numeric } from "./words.js";

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

/** observed requests the observed values of an attribute, if the server supports it.
 * @param {string} path
 * @param {RequestOptions} options
 * @returns {Promise<Response<ObservedValues>>} */
const observed = (path, options) => ask(path, options).catch((error) => {
  if (error.status === 404 || error.status === 400) return { body: undefined };
  throw error;
});

/** NewFilter adds a filter, with the observed values of its attribute. The parameter visitors has those that the API has
 * no parameter for: what is not, and own attributes.
 * @param {{ subject: Subject, route: Route, go: Go, own: string[] }} props */
export function NewFilter({ subject, route, go, own }) {
  const list = "observed-" + useId();
  const [name, setName] = useState("device");
  const [not, setNot] = useState(false);
  const [value, setValue] = useState("");
  const number = numeric.includes(name);
  const { body } = useAnswer(number ? undefined : subject.path + "/dimensions/" + name + query({ limit: 1000 }), { request: observed, every: never });
  const values = body?.dimension === name ? body.values : undefined;
  const picked = !text.includes(name) && !number && values;
  /** @param {Event} event */
  const add = (event) => {
    event.preventDefault();
    const key = named(name);
    if (not || !(name in filters)) go(route.with("visitors", joined(route.get("visitors"), compared(name, value, not))));
    else go(listed.includes(name) ? route.without(key, value).also(key, value) : route.without(key).also(key, value));
    setValue("");
  };
  return (
    <form class="filter" onSubmit={add}>
      <label>Filter by <select value={name} name="by" onChange={(e) => { setName(e.currentTarget.value); setNot(false); setValue(""); }}>{[...Object.keys(filters), "channel", ...own].map((n) => <option key={n} value={n}>{labelOf(n)}</option>)}</select></label>
      {!number && <label><span class="hidden">Comparison</span><select name="comparison" value={String(not)} onChange={(e) => setNot(e.currentTarget.value === "true")}><option value="false">is</option><option value="true">is not</option></select></label>}
      {picked ? (
        <label>Value <select name="value" required value={value} onChange={(e) => setValue(e.currentTarget.value)}>
          <option value="">Select …</option>
          {values.filter((v) => v.value).map((v) => <option key={v.value} value={v.value}>{v.value} ({count(v.visitors)})</option>)}
        </select></label>
      ) : (
        <label>Value <input name="value" value={value} onInput={(e) => setValue(e.currentTarget.value)} required={!text.includes(name)} type={number ? "number" : "text"} step="any"
          list={list} placeholder={text.includes(name) ? "empty: not set, *: any" : ""} autocomplete="off" /></label>
      )}
      <datalist id={list}>{!picked && values?.map((v) => <option key={v.value} value={v.value}>{count(v.visitors)} visitors</option>)}</datalist>
      <button type="submit">Add filter</button>
    </form>
  );
}

/** chipsOf returns the filters of a route, except its dates, as words, each with the route without it. Each comparison of
 * a condition is one.
 * @param {Route} route
 * @returns {{ text: string, without: Route }[]} */
function chipsOf(route) {
  const condition = route.get("visitors"), terms = condition ? termsOf(condition) : [];
  return [
    ...route.filters.filter(([name]) => name !== "visitors" && !dates.includes(name)).map(([name, value]) => ({ text: `${filters[bare(name)] || bare(name)}: ${value || "not set"}`, without: route.without(name, value) })),
    ...terms.map((term, i) => ({ text: worded(term), without: route.with("visitors", terms.filter((_, k) => k !== i).join(" and ")) })),
  ];
}

/** Chips are the filters of a route, except its dates.
 * @param {{ route: Route, go: Go }} props */
export function Chips({ route, go }) {
  const chips = chipsOf(route);
  if (chips.length === 0) return null;
  return (
    <ul class="chips" aria-label="Filters">
      {chips.map(({ text, without }) => <li key={text}>{text}<button type="button" aria-label={"Remove " + text.replace(":", "")} onClick={() => go(without)}>×</button></li>)}
      <li><button type="button" onClick={() => go(route.filters.reduce((r, [n]) => (dates.includes(n) ? r : r.without(n)), route))}>Remove all</button></li>
    </ul>
  );
}

/** described writes the filters of a route as words.
 * @param {Route} route */
export const described = (route) => chipsOf(route).map(({ text }) => text.replace(":", "").replace(/^[A-Z](?=[a-z])/, (c) => c.toLowerCase())).join(", ") || "all visitors";
