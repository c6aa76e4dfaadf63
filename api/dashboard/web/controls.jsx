import { useState } from "preact/hooks";
import { ask, query } from "./api.js";
import { count } from "./format.js";
import { useAnswer } from "./hooks.js";
import { compareMetrics, filters, listed, metrics, numeric } from "./words.js";

const never = 1 << 30;

const Choice = ({ label, name, options, route, go }) => (
  <label>{label}
    <select name={name} value={route.get(name) || ""} onChange={(e) => go(route.with(name, e.target.value))}>
      {options.every(([value]) => value !== (route.get(name) || "")) && <option value={route.get(name)}>{route.get(name)}</option>}
      {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
    </select>
  </label>
);

const named = (name) => `filters[${name}]` + (listed.includes(name) ? "[]" : "");
const bare = (name) => name.slice("filters[".length, name.indexOf("]"));
const text = Object.keys(filters).filter((name) => !listed.includes(name) && !numeric.includes(name) && name !== "visitorType");
const dates = ["filters[dateFrom]", "filters[dateTo]"];

// observed asks for the values that there are, where the server can tell.
const observed = (path, options) => ask(path, options).catch((error) => {
  if (error.status === 404 || error.status === 400) return { body: undefined };
  throw error;
});

function NewFilter({ subject, route, go }) {
  const [name, setName] = useState("device");
  const [value, setValue] = useState("");
  const { body } = useAnswer(numeric.includes(name) ? undefined : subject.path + "/dimensions/" + name + query({ limit: 1000 }), { request: observed, every: never });
  const values = body?.dimension === name ? body.values : undefined;
  const picked = (listed.includes(name) || name === "visitorType") && values;
  const add = (event) => {
    event.preventDefault();
    const key = named(name);
    go(listed.includes(name) ? route.without(key, value).also(key, value) : route.without(key).also(key, value));
    setValue("");
  };
  return (
    <form class="filter" onSubmit={add}>
      <label>Filter by <select value={name} name="by" onChange={(e) => { setName(e.target.value); setValue(""); }}>{Object.entries(filters).map(([n, text]) => <option key={n} value={n}>{text}</option>)}</select></label>
      {picked ? (
        <label>Value <select name="value" required value={value} onChange={(e) => setValue(e.target.value)}>
          <option value="">Select …</option>
          {values.filter((v) => v.value).map((v) => <option key={v.value} value={v.value}>{v.value} ({count(v.visitors)})</option>)}
        </select></label>
      ) : (
        <label>Value <input name="value" value={value} onInput={(e) => setValue(e.target.value)} required={!text.includes(name)} type={numeric.includes(name) ? "number" : "text"} step="any"
          list="observed" placeholder={text.includes(name) ? "empty: not set, *: any" : ""} autocomplete="off" /></label>
      )}
      <datalist id="observed">{!picked && values?.map((v) => <option key={v.value} value={v.value}>{count(v.visitors)} visitors</option>)}</datalist>
      <button type="submit">Add filter</button>
    </form>
  );
}

export function Controls({ subject, route, go }) {
  const goals = useAnswer("/v1/goals" + query([["websiteId", route.get("websiteId")]]), { every: never });
  const offered = compareMetrics[subject.kind];
  const chips = route.filters.filter(([name]) => !dates.includes(name));
  const set = (name) => (e) => go(route.with(name, e.target.value));
  return (
    <section class="controls" aria-label="Settings">
      <div class="choices">
        <Choice label="Goal" name="goal" route={route} go={go} options={[["", subject.kind === "widget" ? "all goals" : "primary goal"], ...(goals.body || []).map((g) => [String(g.id), g.name])]} />
        {offered.length > 0 && <Choice label="Metric" name="compareMetric" route={route} go={go} options={[["", "default"], ...offered.map((m) => [m, metrics[m]])]} />}
        {subject.kind === "campaign" && <Choice label="Break down by" name="dimension" route={route} go={go} options={[["", "none"], ...["device", "country", "channel", "referrer"].map((d) => [d, d])]} />}
        <label>From <input type="date" name="dateFrom" value={route.get(dates[0])?.slice(0, 10) || ""} onChange={set(dates[0])} /></label>
        <label>To (inclusive) <input type="date" name="dateTo" value={route.get(dates[1])?.slice(0, 10) || ""} onChange={set(dates[1])} /></label>
      </div>
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
