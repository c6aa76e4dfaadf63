import { useEffect } from "preact/hooks";
import { all, query } from "./api.js";
import { count, day } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Empty, Fault, Loading, Num, State } from "./parts.jsx";
import { follow, to } from "./route.js";
import { kind } from "./words.js";

const page = 50;
const types = {
  campaigns: ["personalization", "themePersonalization", "productPersonalization", "shippingPersonalization", "urlSplitPersonalization", "fullStackPersonalization", "templatePersonalization",
    "experiment", "themeExperiment", "productExperiment", "shippingExperiment", "urlSplitExperiment", "fullStackExperiment", "templateExperiment"],
  widgets: ["popup", "callout", "bar", "embedded"],
};
const counters = {
  campaigns: [["views", "Views"], ["goalsReached", "Goals"], ["value", "Value"]],
  widgets: [["views", "Views"], ["clicks", "Clicks"], ["conversions", "Conversions"], ["goalsReached", "Goals"], ["value", "Value"]],
};

function Table({ show, items, link, go }) {
  return (
    <table class="cards" role="table" aria-label={show}>
      <thead role="rowgroup"><tr role="row">
        {["Name", "State", "Type", "Started"].map((h) => <th key={h} role="columnheader" scope="col">{h}</th>)}
        {[...(show === "campaigns" ? ["Traffic"] : []), ...counters[show].map(([, h]) => h)].map((h) => <th key={h} role="columnheader" scope="col" class="n">{h}</th>)}
      </tr></thead>
      <tbody role="rowgroup">{items.map((item) => (
        <tr key={item.id} role="row" data-id={item.id}>
          <th role="rowheader" scope="row"><a {...follow(go, link(item))}>{item.name}</a><small>id {item.id}</small></th>
          <td role="cell" data-label="State"><State {...item} /></td>
          <td role="cell" data-label="Type">{kind(item.type)}</td>
          <td role="cell" data-label="Started">{day(item.startDate)}</td>
          {show === "campaigns" && <td role="cell" data-label="Traffic" class="n"><Num value={item.trafficAllocation}>{item.trafficAllocation} %</Num></td>}
          {counters[show].map(([name, text]) => <td key={name} role="cell" data-label={text} class="n"><Num value={item[name]}>{count(item[name])}</Num></td>)}
        </tr>
      ))}</tbody>
    </table>
  );
}

function Pages({ offset, total, route, go }) {
  if (!(total > page)) return null;
  const at = (n) => go(route.with("offset", n > 0 ? String(n) : ""));
  return (
    <nav class="buttons" aria-label="Pages">
      <button type="button" disabled={offset === 0} onClick={() => at(offset - page)}>← Previous</button>
      <span>{offset + 1}–{Math.min(offset + page, total)} of {count(total)}</span>
      <button type="button" disabled={offset + page >= total} onClick={() => at(offset + page)}>Next →</button>
    </nav>
  );
}

// List has a website's campaigns or widgets. The API knows no search: with one
// all pages are asked for.
export function List({ route, go }) {
  const websites = useAnswer("/v1/websites", { every: 60000 });
  const show = route.get("show") === "widgets" ? "widgets" : "campaigns";
  const website = route.get("websiteId") || (websites.body?.length > 1 ? String(websites.body[0].id) : undefined);
  const search = (route.get("search") || "").toLowerCase(), offset = Number(route.get("offset")) || 0;
  const parameters = { websiteId: website, active: route.get("active"), type: route.get("type") };
  const ready = websites.body?.length > 0;
  const path = ready && `/v1/${show}${query(search ? parameters : { ...parameters, offset, limit: page })}`;
  const found = useAnswer(path, search ? { request: (_, { signal }) => all("/v1/" + show, parameters, signal) } : {});
  useEffect(() => { document.title = "Lifthouse"; }, []);
  const here = found.path === path ? found.body : undefined;
  const items = here?.filter((item) => item.name.toLowerCase().includes(search) || String(item.id) === search);
  const set = (name) => (e) => go(route.with("offset").with(name, e.target.value), { replace: name === "search" });
  const several = websites.body?.length > 1;
  const link = (item) => to([[show.slice(0, -1), item.id], ...(several ? [["websiteId", website]] : [])]);
  const other = (name) => to([["websiteId", route.get("websiteId")], ...(name === "widgets" ? [["show", name]] : [])]);
  return (
    <>
      <div class="title"><h1>{several ? "Websites" : websites.body?.[0]?.domain || "Results"}</h1></div>
      <nav class="tabs" aria-label="Lists">{["campaigns", "widgets"].map((name) => <a key={name} {...follow(go, other(name))} aria-current={show === name ? "page" : undefined}>{name[0].toUpperCase() + name.slice(1)}</a>)}</nav>
      <section class="controls" aria-label="Filters"><div class="choices">
        {several && <label>Website <select name="websiteId" value={website} onChange={set("websiteId")}>{websites.body.map((w) => <option key={w.id} value={w.id}>{w.domain}</option>)}</select></label>}
        <label>Search <input type="search" name="search" value={route.get("search") || ""} onInput={set("search")} placeholder="name or id" /></label>
        <label>State <select name="active" value={route.get("active") || ""} onChange={set("active")}><option value="">any</option><option value="true">running</option><option value="false">not running</option></select></label>
        <label>Type <select name="type" value={route.get("type") || ""} onChange={set("type")}><option value="">any</option>{types[show].map((t) => <option key={t} value={t}>{kind(t)}</option>)}</select></label>
      </div></section>
      {[websites, found].filter(({ error }) => error).slice(0, 1).map(({ error, again }) => <Fault key="fault" error={error} again={again} />)}
      {websites.body?.length === 0 && <Empty>No websites yet. Declare a website in a catalogue file and apply it: <code>lifthouse apply -f catalog.yaml</code></Empty>}
      {ready && !here && found.loading && <Loading what={show} />}
      {items?.length === 0 && <Empty>{search || parameters.active || parameters.type ? `No matching ${show}.` : `This website has no ${show} yet.`}</Empty>}
      {items?.length > 0 && <Table {...{ show, items, link, go }} />}
      {!search && <Pages {...{ offset, total: found.total, route, go }} />}
    </>
  );
}
