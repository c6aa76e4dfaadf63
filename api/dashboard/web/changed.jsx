// @ts-check
import { useState } from "preact/hooks";
import { query } from "./api.js";
import { dates } from "./filters.jsx";
import { comparedOf } from "./forest.jsx";
import { count, lift, liftSpan, money, percent } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Fault, Loading, Mark, Num } from "./parts.jsx";
import { Cell } from "./table.jsx";

/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Effect, Results, Subject } from "./types.d.ts" */

/** @typedef {{ name: string, what: string, without?: Results, observed?: boolean }} Change */

/** changesOf returns what a report applies beyond counting all events.
 * @param {Results} results @param {Route} route
 * @returns {Change[]} */
function changesOf({ checks, variations }, route) {
  const { cap, outliers, multipleExposures: several, window } = checks, found = /** @type {Change[]} */ ([]);
  const prior = variations.find((v) => v.comparison?.bayesian?.prior)?.comparison?.bayesian?.prior;
  if (several.visitors > 0) found.push({ name: "Multi-exposed visitors", what: `${count(several.visitors)} visitors (${percent(several.share, 2)}) ${several.rule === "exclude" ? "are excluded" : "count for their first variation"}.` });
  if (window.earlierVisitors > 0) found.push({ name: "Exposed before the window", what: `${count(window.earlierVisitors)} visitors are excluded.` });
  if (cap?.amount) found.push({ name: "Cap", what: `At most ${money(cap.amount)} counts for a visitor (${cap.rule}). ${count(cap.visitors)} visitors lose ${money(cap.valueRemoved)} in all.` });
  if (outliers) found.push({ name: "Outliers", what: `${count(outliers.removed)} goal events are excluded.` });
  if (prior) found.push({ name: "Prior", what: `Normal, mean ${percent(prior.mean)}, standard deviation ${percent(prior.standardDeviation)}. It shrinks the uplift.`, observed: true });
  if (route.filters.some(([n]) => !dates.includes(n))) found.push({ name: "Filters", what: "Only matching visitors count." });
  return found;
}

/** @param {{ effect: Effect | undefined, observed?: boolean }} props */
const Uplift = ({ effect, observed }) => {
  const value = observed ? effect?.observed : effect?.value;
  return <><Num value={value}>{lift(value, effect?.interval)}</Num>{!observed && <small>{liftSpan(effect?.interval)}</small>}</>;
};

/** Changes is the table of the settings with the uplifts with and without each.
 * @param {{ changes: Change[], subject: Subject, results: Results, route: Route }} props */
function Changes({ changes, subject, results, route }) {
  const filtered = changes.some(({ name }) => name === "Filters");
  /** @type {Answer<Results>} */
  const { body, error, again } = useAnswer(filtered && subject.path + "/results" + query(route.asked.filter(([n]) => n !== "dimension" && (!n.startsWith("filters[") || dates.includes(n)))));
  const rows = changes.flatMap((change) => comparedOf(results).map((v) => ({ change, v })));
  if (error) return <Fault error={error} again={again} />;
  if (filtered && !body) return <Loading what="the report without filters" />;
  return (
    <table class="cards" role="table" aria-label="What changed the number">
      <thead role="rowgroup"><tr role="row">{["Setting", "Effect", "Uplift", "Uplift without it"].map((h, i) => <th key={h} role="columnheader" scope="col" class={i > 1 ? "n" : undefined}>{h}</th>)}</tr></thead>
      <tbody role="rowgroup">{rows.map(({ change, v }) => {
        const before = change.observed ? v.comparison.improvement : change.name === "Filters" ? body?.variations[v.index]?.comparison?.improvement : undefined;
        return (
          <tr key={change.name + v.id} role="row" data-change={change.name}>
            <th role="rowheader" scope="row">{change.name}<small><Mark index={v.index} />{"\u00a0"}{v.name}</small></th>
            <Cell label="Effect" class="two">{change.what}</Cell>
            <Cell label="Uplift" class="n"><Uplift effect={v.comparison.improvement} /></Cell>
            <Cell label="Uplift without it" class="n">{before ? <Uplift effect={before} observed={change.observed} /> : <span class="quiet">not computed</span>}</Cell>
          </tr>
        );
      })}</tbody>
    </table>
  );
}

/** Changed lists what the report applies beyond counting all events. It requests the
 * report without filters once it is opened.
 * @param {{ subject: Subject, results: Results, route: Route }} props */
export function Changed({ subject, results, route }) {
  const [open, setOpen] = useState(false), changes = changesOf(results, route);
  if (changes.length === 0 || comparedOf(results).length === 0) return null;
  return (
    <section aria-labelledby="changed">
      <h2 id="changed">What changed the number</h2>
      <details onToggle={(e) => setOpen(e.currentTarget.open)}>
        <summary>{changes.map(({ name }) => name).join(", ")}</summary>
        {open && <Changes {...{ changes, subject, results, route }} />}
      </details>
    </section>
  );
}
