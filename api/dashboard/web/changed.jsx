// @ts-check
import { useState } from "preact/hooks";
import { query } from "./api.js";
import { comparedOf } from "./forest.jsx";
import { count, lift, liftSpan, money, percent } from "./format.js";
import { Help } from "./help.jsx";
import { useAnswer } from "./hooks.js";
import { Mark, Num, Part } from "./parts.jsx";
import { dates } from "./period.jsx";
import { Cell } from "./table.jsx";

/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Effect, Prior, Results, Subject } from "./types.d.ts" */

/** Change is a setting of a report. Its lift without the setting is that of the report at
 * a path, or the observed one.
 * @typedef {{ name: string, of?: string, what: string, without?: string, observed?: boolean }} Change */

const zScore = "filters[zScore]";
const noCap = "1000000000"; // the highest cap of the API

/** originOf says where a prior comes from. @param {Prior} prior */
export const originOf = ({ campaigns: n }) => n === undefined ? "as declared" : n === 0 ? "as usual of a first campaign" : `learned from ${n} past ${n === 1 ? "campaign" : "campaigns"}`;

/** changesOf returns what a report applies beyond counting all events.
 * @param {Results} results @param {Subject} subject @param {Route} route
 * @returns {Change[]} */
function changesOf({ checks, variations }, subject, route) {
  const { cap, outliers, multipleExposures: several, window } = checks, found = /** @type {Change[]} */ ([]);
  const prior = variations.find((v) => v.comparison?.bayesian?.prior)?.comparison?.bayesian?.prior;
  const asked = route.asked.filter(([n]) => n !== "dimension");
  /** @param {[string, string][]} parameters */
  const report = (parameters) => subject.path + "/results" + query(parameters);
  const segment = asked.filter(([n]) => (n.startsWith("filters[") || n === "visitors") && n !== zScore && !dates.includes(n)).map(([n]) => n);
  if (several.visitors > 0) found.push({ name: "Multi-exposed visitors", of: "multiExposed", what: `${count(several.visitors)} visitors (${percent(several.share, 2)}) ${several.rule === "exclude" ? "are excluded" : "count for their first variation"}.` });
  if (window.earlierVisitors > 0) found.push({ name: "Exposed before the window", of: "earlier", what: `${count(window.earlierVisitors)} visitors are excluded.` });
  if (cap?.amount) found.push({ name: "Cap", of: "cap", what: `At most ${money(cap.amount)} counts for a visitor (${cap.rule}). ${count(cap.visitors)} visitors lose ${money(cap.valueRemoved)} in all.`, without: report([...asked.filter(([n]) => n !== "cap"), ["cap", noCap]]) });
  if (outliers) found.push({ name: "Outliers", of: "outliers", what: `${count(outliers.removed)} goal events are excluded.`, without: report(asked.filter(([n]) => n !== zScore)) });
  if (prior) found.push({ name: "Prior", of: "prior", what: `Normal, mean ${percent(prior.mean)}, standard deviation ${percent(prior.standardDeviation)}, ${originOf(prior)}. It shrinks the lift.`, observed: true });
  if (segment.length > 0) found.push({ name: "Filters", what: "Only matching visitors count.", without: report(asked.filter(([n]) => !segment.includes(n))) });
  return found;
}

/** @param {{ effect: Effect | undefined, observed?: boolean }} props */
const Lift = ({ effect, observed }) => {
  const value = observed ? effect?.observed : effect?.value;
  return <><Num value={value}>{lift(value, effect?.interval)}</Num>{!observed && <small>{liftSpan(effect?.interval)}</small>}</>;
};

/** Rows are the variations with their lifts with and without a setting.
 * @param {{ change: Change, results: Results }} props */
function Rows({ change, results }) {
  /** @type {Answer<Results>} */
  const { body, error } = useAnswer(change.without);
  const still = change.of === "cap" && body?.checks.cap?.visitors; // visitors above the highest cap
  return <>{comparedOf(results).map((v) => {
    const before = change.observed ? v.comparison.improvement : body?.variations[v.index]?.comparison?.improvement;
    const missing = change.without && !body && !error ? "…" : "not computed";
    return (
      <tr key={v.id} role="row" data-change={change.name}>
        <th role="rowheader" scope="row">{change.name}{change.of && <Help of={change.of} />}<small><Mark index={v.index} />{"\u00a0"}{v.name}</small></th>
        <Cell label="Effect" class="two">{change.what}</Cell>
        <Cell label="Lift" class="n"><Lift effect={v.comparison.improvement} /></Cell>
        <Cell label="Lift without it" class="n">{before && !still ? <Lift effect={before} observed={change.observed} /> : <span class="quiet">{missing}</span>}</Cell>
      </tr>
    );
  })}</>;
}

const heads = ["Setting", "Effect", "Lift", "Lift without it"];

/** Changed lists what the report applies beyond counting all events. It requests the
 * reports without them once it is opened.
 * @param {{ subject: Subject, results: Results, route: Route }} props */
export function Changed({ subject, results, route }) {
  const [open, setOpen] = useState(false), changes = changesOf(results, subject, route);
  if (changes.length === 0 || comparedOf(results).length === 0) return null;
  return (
    <Part id="changed" title="What changed the number" onToggle={(e) => setOpen(e.currentTarget.open)}>
        {open && (
          <table class="cards" role="table" aria-label="What changed the number">
            <thead role="rowgroup"><tr role="row">{heads.map((h, i) => <th key={h} role="columnheader" scope="col" class={i > 1 ? "n" : undefined}>{h}</th>)}</tr></thead>
            <tbody role="rowgroup">{changes.map((change) => <Rows key={change.name} {...{ change, results }} />)}</tbody>
          </table>
        )}
    </Part>
  );
}
