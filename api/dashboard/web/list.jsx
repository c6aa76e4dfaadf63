// @ts-check
import { useEffect } from "preact/hooks";
import { all, query } from "./api.js";
import { count, day } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Empty, Fault, Loading, Num, State } from "./parts.jsx";
import { follow, to } from "./route.js";
import { kind } from "./words.js";

/** @import { TargetedEvent } from "preact" */
/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, Item, Website } from "./types.d.ts" */

/** @typedef {"campaigns" | "widgets"} Show */

const page = 50;
const types = {
  campaigns: ["personalization", "themePersonalization", "productPersonalization", "shippingPersonalization", "urlSplitPersonalization", "fullStackPersonalization", "templatePersonalization",
    "experiment", "themeExperiment", "productExperiment", "shippingExperiment", "urlSplitExperiment", "fullStackExperiment", "templateExperiment"],
  widgets: ["popup", "callout", "bar", "embedded"],
};
/** The counters of a list, and their labels.
 * @type {Record<Show, ["views" | "clicks" | "conversions" | "goalsReached" | "value", string][]>} */
const counters = {
  campaigns: [["views", "Views"], ["goalsReached", "Goals"], ["value", "Value"]],
  widgets: [["views", "Views"], ["clicks", "Clicks"], ["conversions", "Conversions"], ["goalsReached", "Goals"], ["value", "Value"]],
};

/** @param {{ show: Show, items: Item[], link: (item: Item) => string, go: Go }} props */
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

/** @param {{ offset: number, total: number | undefined, route: Route, go: Go }} props */
function Pages({ offset, total, route, go }) {
  if (!total || total <= page) return null;
  /** @param {number} n */
  const at = (n) => go(route.with("offset", n > 0 ? String(n) : ""));
  return (
    <nav class="buttons" aria-label="Pages">
      <button type="button" disabled={offset === 0} onClick={() => at(offset - page)}>← Previous</button>
      <span>{offset + 1}–{Math.min(offset + page, total)} of {count(total)}</span>
      <button type="button" disabled={offset + page >= total} onClick={() => at(offset + page)}>Next →</button>
    </nav>
  );
}

/** List shows the campaigns or widgets of a website. The API has no search, so a
 * search requests all pages.
 * @param {{ route: Route, go: Go }} props */
export function List({ route, go }) {
  /** @type {Answer<Website[]>} */
  const websites = useAnswer("/v1/websites", { every: 60000 });
  const show = route.get("show") === "widgets" ? "widgets" : "campaigns";
  const website = route.get("websiteId") || (websites.body && websites.body.length > 1 ? String(websites.body[0].id) : undefined);
  const search = (route.get("search") || "").toLowerCase(), offset = Number(route.get("offset")) || 0;
  const parameters = { websiteId: website, active: route.get("active"), type: route.get("type") };
  const ready = Boolean(websites.body?.length);
  const path = ready && `/v1/${show}${query(search ? parameters : { ...parameters, offset, limit: page })}`;
  /** @type {Answer<Item[]>} */
  const found = useAnswer(path, search ? { request: (_, { signal }) => all("/v1/" + show, parameters, signal) } : {});
  useEffect(() => { document.title = "Lifthouse"; }, []);
  const failed = [websites, found].find(({ error }) => error);
  const here = found.path === path ? found.body : undefined;
  const items = here?.filter((item) => item.name.toLowerCase().includes(search) || String(item.id) === search);
  /** @param {string} name @returns {(e: TargetedEvent<HTMLInputElement | HTMLSelectElement>) => void} */
  const set = (name) => (e) => go(route.with("offset").with(name, e.currentTarget.value), { replace: name === "search" });
  const several = websites.body !== undefined && websites.body.length > 1;
  /** @param {Item} item */
  const link = (item) => to([[show.slice(0, -1), item.id], ...(several ? [/** @type {[string, string | undefined]} */ (["websiteId", website])] : [])]);
  /** @param {Show} name */
  const other = (name) => to([["websiteId", route.get("websiteId")], ...(name === "widgets" ? [/** @type {[string, string]} */ (["show", name])] : [])]);
  return (
    <>
      <div class="title"><h1>{several ? "Websites" : websites.body?.[0]?.domain || "Results"}</h1></div>
      <nav class="tabs" aria-label="Lists">{/** @type {Show[]} */ (["campaigns", "widgets"]).map((name) => <a key={name} {...follow(go, other(name))} aria-current={show === name ? "page" : undefined}>{name[0].toUpperCase() + name.slice(1)}</a>)}</nav>
      <section class="controls" aria-label="Filters"><div class="choices">
        {several && <label>Website <select name="websiteId" value={website} onChange={set("websiteId")}>{websites.body?.map((w) => <option key={w.id} value={w.id}>{w.domain}</option>)}</select></label>}
        <label>Search <input type="search" name="search" value={route.get("search") || ""} onInput={set("search")} placeholder="name or id" /></label>
        <label>State <select name="active" value={route.get("active") || ""} onChange={set("active")}><option value="">any</option><option value="true">running</option><option value="false">not running</option></select></label>
        <label>Type <select name="type" value={route.get("type") || ""} onChange={set("type")}><option value="">any</option>{types[show].map((t) => <option key={t} value={t}>{kind(t)}</option>)}</select></label>
      </div></section>
      {failed?.error && <Fault error={failed.error} again={failed.again} />}
      {websites.body?.length === 0 && <Empty>No websites yet. Declare a website in a catalogue file and apply it: <code>lifthouse apply -f catalog.yaml</code></Empty>}
      {ready && !here && found.loading && <Loading what={show} />}
      {items?.length === 0 && <Empty>{search || parameters.active || parameters.type ? `No matching ${show}.` : `This website has no ${show} yet.`}</Empty>}
      {items && items.length > 0 && <Table {...{ show, items, link, go }} />}
      {!search && <Pages {...{ offset, total: found.total, route, go }} />}
    </>
  );
}
