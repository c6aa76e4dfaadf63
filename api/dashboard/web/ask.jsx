// @ts-check
import "./shared.js";
import { useEffect } from "preact/hooks";
import { query } from "./api.js";
import { Box } from "./box.jsx";
import { count, number } from "./format.js";
import { useAnswer } from "./hooks.js";
import { partsOf, parametersOf, placedIn } from "./line.js";
import { measureOf } from "./measure.js";
import { DataTable, Fault, Loading, Mark, Num } from "./parts.jsx";
import { dates } from "./period.jsx";
import { remember } from "./remembered.js";
import { Rows, segmentsOf } from "./rows.jsx";
import { labelOf } from "./words.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Measure } from "./measure.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, Names, Results, Segment, SplitItem, Subject } from "./types.d.ts" */

/** canonicalOf returns the line of an answered question in canonical form. A metric with a name is written as its
 * expression, of the goal.
 * @param {Results} results @param {Names} names */
function canonicalOf({ question, compareMetric, goal, dimension, split }, names) {
  const named = names.metrics.find(({ name }) => name === compareMetric), of = names.goals.find(({ id }) => id === goal?.id);
  const metric = question?.metric ?? (named && of && named.expression.replaceAll("any", () => of.text));
  if (!metric) return undefined;
  return metric + (question?.visitors ? " for " + question.visitors : "") + (dimension ? " by " + dimension.replace(",", ", ") : "") + (split ? " split " + split.by : "");
}

/** wholeOf returns a row for each compared variation.
 * @param {Results} results
 * @returns {Segment[]} */
function wholeOf({ variations: [control, ...others] }) {
  return others.flatMap((v, i) => (v.comparison ? [{ cell: { value: v.name, totals: v }, control, variation: v, comparison: v.comparison, index: i + 1 }] : []));
}

/** partsOfSplit returns a row for each value and compared variation. Its visitors are those whose quantity is not 0.
 * @param {SplitItem[]} items @param {Results["variations"]} variations
 * @returns {Segment[]} */
function partsOfSplit(items, variations) {
  return items.flatMap(({ value, label, variations: parts }) => {
    const all = parts.map((part, i) => ({ id: part.id, name: variations[i].name, visitors: part.metric.visitors, metric: part.metric }));
    const visitors = all.reduce((n, part) => n + part.visitors, 0);
    return parts.flatMap(({ comparison }, index) => (comparison ? [{ cell: { value, label, totals: { visitors } }, control: all[0], variation: all[index], comparison, index }] : []));
  });
}

/** The numerators and denominators of the metrics with a name.
 * @type {Record<string, ["convertedVisitors" | "goalsReached" | "value" | "profit" | "extraValue", "visitors" | "goalsReached"]>} */
const sums = {
  goalConversionRate: ["convertedVisitors", "visitors"], goalsPerVisitor: ["goalsReached", "visitors"], averageValue: ["value", "goalsReached"],
  valuePerVisitor: ["value", "visitors"], profitPerVisitor: ["profit", "visitors"], extraValuePerVisitor: ["extraValue", "visitors"],
};

/** Sums are the numerator and the denominator of each variation.
 * @param {{ results: Results }} props */
function Sums({ results: { variations, compareMetric } }) {
  const named = sums[compareMetric ?? ""];
  /** @param {number | null | undefined} x */
  const write = (x) => <Num value={x}>{x === null || x === undefined ? "–" : Number.isInteger(x) ? count(x) : number(x, 2)}</Num>;
  return (
    <details class="sums"><summary>Numerator and denominator</summary>
      <DataTable label="Numerator and denominator" heads={["Variation", "Numerator", "Denominator", "Visitors"]}>
        {variations.map((v, i) => (
          <tr key={v.id} data-sums={v.id}>
            <th scope="row"><Mark index={i} />{"\u00a0"}{v.name}</th>
            <td>{write(v.metric ? v.metric.numerator : named && v[named[0]])}</td><td>{write(v.metric ? v.metric.denominator : named && v[named[1]])}</td><td>{write(v.visitors)}</td>
          </tr>
        ))}
      </DataTable>
    </details>
  );
}

/** inUnit writes the unit of a metric.
 * @param {Measure} measure @param {string | undefined} currency */
const inUnit = ({ unit }, currency) => (unit === "money" ? `money${currency ? " in " + currency : ""}` : unit);

/** Answered is the answer to a question: its metric, and a table of the variations, of the segments or of the parts.
 * @param {{ results: Results, currency?: string, known: string[] }} props */
function Answered({ results, currency, known }) {
  const { question, split, breakdown, dimension, goal, window: { from, to } } = results, measure = measureOf(results);
  const warnings = results.checks.warnings.filter(({ code }) => !known.includes(code));
  const of = split ? { segments: partsOfSplit(split.items, results.variations), what: labelOf(split.by) }
    : breakdown ? { segments: segmentsOf(results), what: (dimension ?? "").split(",").map(labelOf).join(" · ") } : { segments: wholeOf(results) };
  return (
    <>
      <h3 id="asked">{measure.name}{!question?.metric && goal && ": " + goal.name} <small class="inline-note">{inUnit(measure, currency)}</small></h3>
      <p class="quiet">{question?.metric || question?.visitors ? question.words : ""} {(from || to) && `Visitors ${from ? "from " + from : ""} ${to ? "until " + to : ""}`}</p>
      {warnings.map(({ code, message }) => <p key={code} class="notice warn">{message}</p>)}
      {of.segments.length > 0 ? <Rows key={split ? "split" : dimension} {...of} {...{ results, measure }} label="asked" /> : <p class="empty">Nothing to compare.</p>}
      {split && <p class="quiet" id="adds-up">{split.additive ? "The parts add up to the metric." : "The parts do not add up to the metric: a visitor can count in several."}</p>}
      <Sums results={results} />
    </>
  );
}

/** Ask answers a question that is written in one line. The address has the line, and the dates of the page apply.
 * @param {{ subject: Subject, route: Route, go: Go, currency?: string, names?: Names, results: Results, every: number }} props */
export function Ask({ subject, route, go, currency, names, results, every }) {
  const line = route.get("ask") ?? "", parts = partsOf(line);
  const asked = [...route.pairs.filter(([name]) => dates.includes(name) || name === "websiteId"), ...parametersOf(parts)];
  /** @type {Answer<Results>} */
  const { body, error, loading, path, again } = useAnswer(line && subject.path + "/results" + query(asked), { every });
  const answered = line !== "" && body && !error && path === subject.path + "/results" + query(asked) ? body : undefined;
  const faults = error?.faults.map((fault) => placedIn(parts, fault)) ?? [], others = faults.filter(({ at }) => at === undefined);
  const canonical = answered && (names ? canonicalOf(answered, names) : undefined);
  const metric = route.get("metric"), split = route.get("split");
  useEffect(() => { // an address with the parameters of the API
    if (metric) go(route.without("metric").without("split").with("ask", metric + (split ? " split " + split : "")), { replace: true });
  }, [metric]);
  useEffect(() => {
    if (!answered) return;
    remember(canonical ?? line);
    if (canonical && canonical !== line) go(route.with("ask", canonical), { replace: true });
  }, [answered, canonical]);
  return (
    <section aria-labelledby="ask" aria-busy={line !== "" && loading && !answered && !error}>
      <Box line={line} faults={line && error?.status === 400 ? faults.filter(({ at }) => at !== undefined) : []} {...{ subject, route }} ask={(text) => go(route.with("ask", text))} again={again} />
      {line && error && (error.status !== 400 || others.length > 0 || faults.length === 0) && <Fault error={error} again={again} />}
      {line && !answered && !error && <Loading what="the answer" />}
      {answered && <Answered results={answered} currency={currency} known={results.checks.warnings.map(({ code }) => code)} />}
    </section>
  );
}
