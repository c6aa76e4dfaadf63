// @ts-check
import "./shared.js";
import { useEffect, useState } from "preact/hooks";
import { count, day, rounded } from "./format.js";
import { all, ask } from "./api.js";
import { groupOf, groups, listed, matches, placeOf, sorted } from "./groups.js";
import { useAnswer } from "./hooks.js";
import { Listing } from "./listing.jsx";
import { later } from "./later.jsx";
import { News, remember } from "./news.jsx";
import { Empty, Fault, Loading } from "./parts.jsx";
import { follow, to } from "./route.js";
import { Undeclared } from "./undeclared.jsx";
import { kind } from "./words.js";

/** @import { TargetedEvent } from "preact" */
/** @import { Group } from "./groups.js" */
/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { WorthOf } from "./listing.jsx" */
/** @import { Go, Item, Listed, Programme, Website, WebsiteStatus } from "./types.d.ts" */

const Waiting = later(() => import("./sources.jsx").then((m) => m.Waiting));

const types = {
  campaigns: ["personalization", "themePersonalization", "productPersonalization", "shippingPersonalization", "urlSplitPersonalization", "fullStackPersonalization", "templatePersonalization",
    "experiment", "themeExperiment", "productExperiment", "shippingExperiment", "urlSplitExperiment", "fullStackExperiment", "templateExperiment"],
  widgets: ["popup", "callout", "bar", "embedded"],
};

const shows = { "": "All", campaigns: "Campaigns", widgets: "Widgets" };

/** unknown reports whether the server has not computed a status of an item yet.
 * @param {Item} item */
const unknown = ({ status }) => [status ?? []].flat().some((s) => s.reason === "NOT_COMPUTED");

/** useItems requests the campaigns or widgets of a website with their statuses.
 * @param {"campaigns" | "widgets"} show @param {string | undefined} website @param {boolean} wanted
 * @returns {Answer<Item[]> & { here?: Listed[] }} */
function useItems(show, website, wanted) {
  const parameters = { websiteId: website, include: "status" };
  const path = wanted && `/v1/${show}?${new URLSearchParams({ websiteId: website ?? "" })}`;
  /** @type {Answer<Item[]>} */
  const found = useAnswer(path, { request: (_, options) => all("/v1/" + show, parameters, options), every: (body) => (body?.some(unknown) ? 1000 : 5000) });
  const one = show === "campaigns" ? "campaign" : "widget";
  return { ...found, here: found.path === path ? found.body?.map((item) => listed(one, item)) : undefined };
}

/** useWorth requests what the variations of a website are worth, on each primary goal.
 * @param {number | undefined} website @param {Listed[] | undefined} items
 * @returns {WorthOf} */
function useWorth(website, items) {
  const goals = distinct((items ?? []).map(({ primaryGoalId }) => (primaryGoalId ? String(primaryGoalId) : undefined)));
  const path = website !== undefined && goals.length > 0 && `/v1/websites/${website}/worth?goals=${goals}`;
  /** @type {Answer<Programme[]>} */
  const { body } = useAnswer(path, { every: 60000, request: async (_, { signal }) => ({ body: (await Promise.all(goals.map((goal) => ask(`/v1/websites/${website}/worth?goal=${goal}`, { signal })))).map((answer) => answer.body) }) });
  return ({ kind, id, status }) => {
    const of = status?.decision?.variationId, found = body?.map((p) => ({ currency: p.currency, worth: p.items.find((i) => i.variationId === of && (kind === "campaign" ? i.campaignId === id : i.widgetId === id && i.experimentId === status?.experimentId)) })).find(({ worth }) => worth);
    return found ?? { worth: undefined };
  };
}

/** @param {{ label: string, name: string, value: string | undefined, values: string[], write?: (value: string) => string, set: (name: string) => (e: TargetedEvent<HTMLSelectElement>) => void }} props */
const Choice = ({ label, name, value = "", values, write = String, set }) => (
  <label>{label} <select name={name} value={value} onChange={set(name)}>
    <option value="">any</option>
    {value && !values.includes(value) && <option value={value}>{write(value)}</option>}
    {values.map((v) => <option key={v} value={v}>{write(v)}</option>)}
  </select></label>
);

/** @param {(string | undefined)[]} values */
const distinct = (values) => [...new Set(values)].filter((v) => v !== undefined && v !== "").sort();

/** Filters choose among the items of a website. All choices are in the URL.
 * @param {{ route: Route, go: Go, items: Listed[], show: string }} props */
function Filters({ route, go, items, show }) {
  /** @param {string} name @returns {(e: TargetedEvent<HTMLInputElement | HTMLSelectElement>) => void} */
  const set = (name) => (e) => go(route.with(name, e.currentTarget.value), { replace: name === "search" });
  const owners = /** @type {string[]} */ (distinct(items.map((i) => i.owner))), tags = /** @type {string[]} */ (distinct(items.flatMap((i) => i.tags ?? [])));
  const [open, setOpen] = useState(false), chosen = ["search", "active", "type", "owner", "tag"].filter((name) => route.get(name)).length;
  const offered = show === "campaigns" || show === "widgets" ? types[show] : [...types.campaigns, ...types.widgets];
  return (
    <section class={"controls folded" + (open ? " open" : "")} aria-label="Filters">
      <button type="button" class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>Filters{chosen > 0 && ` (${chosen})`}</button><div class="choices">
      <label>Search <input type="search" name="search" value={route.get("search") || ""} onInput={set("search")} placeholder="name, owner, tag or key" /></label>
      <Choice label="State" name="active" value={route.get("active")} values={["true", "false"]} write={(v) => (v === "true" ? "running" : "not running")} set={set} />
      <Choice label="Type" name="type" value={route.get("type")} values={offered} write={kind} set={set} />
      {owners.length > 0 && <Choice label="Owner" name="owner" value={route.get("owner")} values={owners} set={set} />}
      {tags.length > 0 && <Choice label="Tag" name="tag" value={route.get("tag")} values={tags} set={set} />}
    </div></section>
  );
}

/** Groups shows the items by what they need.
 * @param {{ items: Listed[], route: Route, go: Go, link: (item: Listed) => string, worthOf: WorthOf }} props */
function Groups({ items, route, go, link, worthOf }) {
  const by = route.get("sort");
  return /** @type {Group[]} */ (Object.keys(groups)).map((group) => {
    const found = sorted(items.filter((item) => groupOf(item) === group), by);
    return found.length > 0 && <Listing key={group} group={group} items={found} all={items} {...{ route, go, link, worthOf }} />;
  });
}

/** Due says how many decisions are due, and what they are worth together.
 * @param {{ status: WebsiteStatus }} props */
function Due({ status: { toDecide, atStake } }) {
  if (toDecide === 0) return null;
  return <p class="due"><b>{toDecide === 1 ? "1 decision is due" : `${count(toDecide)} decisions are due`}</b>{atStake && <>, expected to be worth <b>{rounded(atStake.expected)} {atStake.currency}</b> a month <small>({rounded(atStake.interval[0])} to {rounded(atStake.interval[1])})</small></>}</p>;
}

/** List is the start page: the campaigns and widgets of a website, grouped by what they
 * need. The server sends all of them, and the page searches and sorts.
 * @param {{ route: Route, go: Go }} props */
export function List({ route, go }) {
  /** @type {Answer<(Website & { status: WebsiteStatus })[]>} */
  const websites = useAnswer("/v1/websites?include=status", { every: (found) => (found?.some(({ status }) => status.reason) ? 3000 : 60000) });
  const asked = route.get("show"), show = asked === "widgets" || asked === "campaigns" ? asked : "";
  const several = websites.body !== undefined && websites.body.length > 1;
  const website = route.get("websiteId") || (several ? String(websites.body?.[0].id) : undefined);
  const ready = Boolean(websites.body?.length), here = websites.body?.find((w) => String(w.id) === website) ?? websites.body?.[0];
  const found = [useItems("campaigns", website, ready && show !== "widgets"), useItems("widgets", website, ready && show !== "campaigns")];
  useEffect(() => { document.title = "Lifthouse"; }, []);
  const failed = [websites, ...found].find(({ error }) => error);
  const wanted = found.filter((_, i) => show === "" || (show === "campaigns") === (i === 0));
  const items = wanted.every(({ here }) => here) ? wanted.flatMap(({ here }) => here ?? []) : undefined;
  const { active, type, ...texts } = Object.fromEntries(["active", "type", "search", "owner", "tag"].map((name) => [name, route.get(name)]));
  const shown = items?.filter((item) => matches(item, texts) && (!active || String(item.active) === active) && (!type || item.type === type));
  const worthOf = useWorth(here?.id, items);
  useEffect(() => { if (items) remember(items); }, found.map(({ body }) => body));
  /** @param {Listed} item */
  const link = (item) => to([...placeOf(item), ...(several ? [/** @type {[string, string | undefined]} */ (["websiteId", website])] : [])]);
  /** @param {string} name */
  const other = (name) => to([["websiteId", route.get("websiteId")], ["show", name || undefined]]);
  const what = show || "campaigns or widgets";
  // A status is computed again when its events or definitions change.
  const computed = (items ?? []).map(({ status }) => day(status?.computedAt)).filter((at) => at !== day()).sort(), [oldest, newest] = [computed[0], computed[computed.length - 1]];
  const waiting = websites.body?.length === 0 || (show === "" && items?.every(({ views, goalsReached }) => views === 0 && goalsReached === 0));
  return (
    <>
      <div class="title"><h1>{here?.domain || "Results"}</h1>{newest && <span class="quiet">As of <span class="at">{oldest}</span>{oldest !== newest && <> to <span class="at">{newest}</span></>}; lifts at the last look.</span>}</div>
      <nav class="tabs" aria-label="Lists">{Object.entries(shows).map(([name, text]) => <a key={name} {...follow(go, other(name))} aria-current={show === name ? "page" : undefined}>{text}</a>)}{here && Object.entries({ programme: "Programme", plan: "Plan", log: "Log", sources: "Sources" }).map(([view, text]) => <a key={view} {...follow(go, to([["websiteId", here.id], ["view", view]]))}>{text}</a>)}</nav>
      {!(waiting && !items?.length && !several) && <Filters {...{ route, go, show }} items={items ?? []} />}
      {here && !waiting && <Due status={here.status} />}
      {here && !waiting && <News website={here.id} go={go} />}
      {failed?.error && <Fault error={failed.error} again={failed.again} />}
      {ready && <Undeclared website={here?.id} every={waiting ? 1000 : 30000} done={() => found.forEach((f) => f.again())} />}
      {waiting && <Waiting website={here} />}
      {ready && !items && wanted.some(({ loading }) => loading) && <Loading what={what} />}
      {shown?.length === 0 && !waiting && <Empty>{items && items.length > 0 ? `No matching ${what}.` : `This website has no ${what} yet.`}</Empty>}
      {shown && <Groups items={shown} {...{ route, go, link, worthOf }} />}
    </>
  );
}
