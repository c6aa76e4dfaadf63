// @ts-check
import { useState } from "preact/hooks";
import { count, day, lastDay, lift, liftSpan, rounded } from "./format.js";
import { Axis, ForestRow, tick } from "./forest.jsx";
import { groups } from "./groups.js";
import { isNew } from "./news.jsx";
import { Chip, Num, State } from "./parts.jsx";
import { follow } from "./route.js";
import { scaleOf } from "./scale.js";
import { Cell } from "./table.jsx";
import { decisions, health, kind } from "./words.js";

/** @import { Group } from "./groups.js" */
/** @import { Route } from "./route.js" */
/** @import { Comparison, Decision, Go, Listed, Scale, Status, WorthNumbers } from "./types.d.ts" */

/** @typedef {(item: Listed) => { worth: WorthNumbers | undefined, currency?: string }} WorthOf */

const page = 50; // rows of a group at first

/** worded is a decision with its variation, with which its text begins.
 * @param {Decision} decision */
const worded = ({ status, variationId, text }) => (variationId === null ? decisions[status] : text.split(": ", 1)[0]);

/** Of shows the decision of an item, or why there is none.
 * @param {{ item: Listed }} props */
function Of({ item }) {
  const { status } = item;
  if (!status || status.reason === "NOTHING_TO_COMPARE") return <span class="quiet">nothing to compare</span>;
  if (!status.decision) return <span class="quiet">computing …</span>;
  const { decidedAt } = status.decision;
  return <><Chip status={status.decision.status} words={worded(status.decision)} />{isNew(item) && <b class="new"> NEW</b>}{decidedAt && <small>since <span class="at">{lastDay(decidedAt)}</span></small>}</>;
}

/** Worth is what the variation of the decision is expected to be worth a month.
 * @param {{ worth: WorthNumbers | undefined, currency?: string }} props */
function Worth({ worth, currency }) {
  const { valuePerMonth, perMonth } = worth?.expected ?? {}, found = valuePerMonth ?? perMonth;
  if (!found) return <span class="quiet">–</span>;
  return <><b>{rounded(found.value)}</b> {valuePerMonth ? currency : "conversions"} <small>{rounded(found.interval[0])} to {rounded(found.interval[1])}{worth?.of === "tested" && ", of the tested"}</small></>;
}

/** Health shows the names of failed checks.
 * @param {{ status: Status | undefined }} props */
function Health({ status }) {
  if (!status?.computedAt) return <span class="quiet">–</span>;
  if (status.health.length === 0) return <span class="verdict better">✓<span class="hidden"> no check has failed</span></span>;
  return status.health.map((code) => <span key={code} class={"flag " + code}>{health[code] ?? code.toLowerCase().replaceAll("_", " ")}</span>);
}

/** effectOf returns a lift of the list in the form of a comparison.
 * @param {Status | undefined} status
 * @returns {Comparison | undefined} */
const effectOf = (status) => (status?.lift ? /** @type {any} */ ({ improvement: { ...status.lift, value: status.lift.value ?? status.lift.observed ?? null } }) : undefined);

const reach = 0.6; // the common scale shows at most lifts of ±60 %; wider intervals have an arrow

/** scaleOfAll returns a common scale of the lifts.
 * @param {Listed[]} items */
function scaleOfAll(items) {
  const ends = items.flatMap(({ status }) => [status?.lift?.value ?? 0, ...(status?.lift?.interval ?? [])]);
  return scaleOf([-0.1, 0.1, ...ends.map((x) => x === null ? 0 : Math.max(-reach, Math.min(x, reach)))], 4);
}

/** Row is a campaign or widget.
 * @param {{ item: Listed, scale: Scale, go: Go, link: (item: Listed) => string, worthOf: WorthOf }} props */
function Row({ item, scale, go, link, worthOf }) {
  const { status } = item, effect = effectOf(status), worth = worthOf(item);
  const about = [item.owner, ...(item.tags ?? []).map((t) => "#" + t)].filter(Boolean).join(" · ");
  return (
    <tr role="row" data-id={item.id} data-kind={item.kind}>
      <th role="rowheader" scope="row"><a {...follow(go, link(item))}>{item.name}</a><small>{kind(item.type)} {item.key ?? item.id}{status?.experimentId && <>, experiment {status.experimentId}</>}{about && <> · {about}</>}</small></th>
      <Cell label="Decision" class="two"><Of item={item} /></Cell>
      <Cell label="Worth a month" class={"n two" + (worth.worth?.expected ? "" : " none")}><Worth {...worth} /></Cell>
      <Cell label="Lift" class="n two">{status?.lift ? <><b><Num value={status.lift.value}>{lift(status.lift.value, status.lift.interval)}</Num></b> <small>{status.lift.interval ? liftSpan(status.lift.interval) : status.lift.reason === "TOO_EARLY" ? "no look yet" : "no interval"}</small></> : <span class="quiet">–</span>}</Cell>
      <Cell label="Interval" class={effect ? "wide" : "wide none"}>{effect && <ForestRow scale={scale} comparison={effect} index={1} name={item.name} />}</Cell>
      <Cell label="Visitors" class="n"><Num value={status?.visitors}>{count(status?.visitors)}</Num></Cell>
      <Cell label="Days" class="n"><Num value={status?.days}>{count(status?.days)}</Num></Cell>
      <Cell label="Health"><Health status={status} /></Cell>
      <Cell label="State"><State {...item} />{item.startDate && <small>{day(item.startDate)}</small>}</Cell>
    </tr>
  );
}

/** @type {[string, string, string?][]} */
const heads = [["Name", "name"], ["Decision", ""], ["Worth a month", "", "n"], ["Lift", "lift", "n"], ["Interval of the last look", "", "wide"], ["Visitors", "visitors", "n"], ["Days", "days", "n"], ["Health", ""], ["State", ""]];

/** Heads are the column heads. Those that sort are buttons.
 * @param {{ route: Route, go: Go }} props */
function Heads({ route, go }) {
  const by = route.get("sort") ?? "";
  return (
    <tr role="row">{heads.map(([text, name, place]) => {
      const direction = name && by === name ? "ascending" : name && by === "-" + name ? "descending" : undefined;
      const next = direction === undefined ? (name === "name" ? name : "-" + name) : direction === "descending" ? name : "-" + name;
      return (
        <th key={text} role="columnheader" scope="col" class={place} aria-sort={direction}>
          {name ? <button type="button" class="sort" onClick={() => go(route.with("sort", next), { replace: true })}>{text}{direction && <span aria-hidden="true"> {direction === "ascending" ? "↑" : "↓"}</span>}</button> : text}
        </th>
      );
    })}</tr>
  );
}

/** Listing is a group of the start page. all are the items of all groups, which share
 * a scale.
 * @param {{ group: Group, items: Listed[], all: Listed[], route: Route, go: Go, link: (item: Listed) => string, worthOf: WorthOf }} props */
export function Listing({ group, items, all, route, go, link, worthOf }) {
  const [whole, setWhole] = useState(false);
  const [title, meaning] = groups[group], scale = scaleOfAll(all), shown = whole ? items : items.slice(0, page);
  return (
    <section class={"group " + group} aria-labelledby={"group-" + group}>
      <h2 id={"group-" + group}>{title} <span class="count">{count(items.length)}</span><small>{meaning}</small></h2>
      <table class="cards listing" role="table" aria-labelledby={"group-" + group}>
        <thead role="rowgroup"><Heads route={route} go={go} /></thead>
        <tbody role="rowgroup">{shown.map((item) => <Row key={item.kind + item.id} {...{ item, scale, go, link, worthOf }} />)}</tbody>
        {group !== "attention" && items.some(({ status }) => status?.lift) && <tfoot role="rowgroup"><tr role="row"><td role="cell" colSpan={4} /><Cell label="Scale" class="wide"><Axis scale={scale} write={tick} /></Cell><td role="cell" colSpan={4} /></tr></tfoot>}
      </table>
      {shown.length < items.length && <p class="buttons"><button type="button" onClick={() => setWhole(true)}>Show all {count(items.length)}</button></p>}
    </section>
  );
}
