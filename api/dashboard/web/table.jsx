// @ts-check
import { chance, count, isRate, lastDay, lift, liftSpan, metric, metricSpan, money, percent, probability } from "./format.js";
import { Evidence } from "./evidence.jsx";
import { Axis } from "./forest.jsx";
import { Funnel } from "./funnel.jsx";
import { Help } from "./help.jsx";
import { hasDecision } from "./looks.jsx";
import { measureOf } from "./measure.js";
import { Mark, Num, Part, hue } from "./parts.jsx";
import { scaleOf } from "./scale.js";
import { Values } from "./values.jsx";
import { liftIn, verdictOf, why } from "./words.js";

/** @import { ComponentChildren } from "preact" */
/** @import { Route } from "./route.js" */
/** @import { Comparison, Conclusion, Effect, Estimate, Experiment, MetricName, Results, Scale, Subject } from "./types.d.ts" */

/** Bar shows an estimate with its interval.
 * @param {{ scale: Scale, estimate: Estimate, index: number, name: MetricName, label: string }} props */
function Bar({ scale, estimate, index, name, label }) {
  if (!estimate.interval || estimate.value === null) return null;
  const [low, high] = [scale.clip(estimate.interval[0], -Infinity), scale.clip(estimate.interval[1], Infinity)];
  return (
    <svg class={"bar " + hue(index)} height="16" width="100%" role="img" aria-label={`${label}: interval ${metricSpan(name, estimate.interval)}`}>
      <rect x={low + "%"} width={high - low + "%"} y="4" height="8" rx="2" />
      <line x1={scale.at(estimate.value) + "%"} x2={scale.at(estimate.value) + "%"} y1="1" y2="15" />
    </svg>
  );
}

/** Verdict shows a verdict, and of a comparison without looks, whether it holds. The verdict has a colour only if a look
 * supports it and there is a conclusion.
 * @param {{ comparison: Comparison, conclusion?: Conclusion | null }} props */
export function Verdict({ comparison, conclusion = null }) {
  const { sign, word, decided } = verdictOf(comparison);
  return <><span class={"verdict " + (decided && hasDecision(conclusion) ? comparison.verdict : "inconclusive")}><span aria-hidden="true">{sign}</span> {word}</span><Evidence comparison={comparison} /></>;
}

/** Lift shows a lift with its interval, or why there is none; if a prior shrank it, beside the observed one.
 * @param {{ effect: Effect }} props */
export const Lift = ({ effect: { value, observed, interval, reason } }) => (
  <>
    <b><Num value={value}>{lift(value, interval)}</Num></b> <small>{interval ? liftSpan(interval) : reason && why(reason)}</small>
    {observed !== undefined && <small class="observed">observed <Num value={observed}>{lift(observed, interval)}</Num></small>}
  </>
);

/** DecidedOn shows the look that decided, if the verdict of today is not conclusive.
 * @param {{ variation: Results["variations"][number], conclusion: Conclusion | null }} props */
function DecidedOn({ variation, conclusion }) {
  if (!conclusion?.decidedAt || conclusion.variationId !== variation.id || variation.comparison?.conclusive) return null;
  return <small>{conclusion.status} at look {conclusion.look}, <span class="at">{lastDay(conclusion.decidedAt)}</span></small>;
}

/** @param {{ label: string, children?: ComponentChildren, class?: string }} props */
export const Cell = ({ label, children, class: name }) => <td role="cell" data-label={label} class={name}>{children}</td>;

/** Proof shows the chance to beat control, or the p-values of the single test and of the last look.
 * @param {{ comparison: Comparison, label: string }} props */
function Proof({ comparison, label }) {
  const { frequentist, sequential, bayesian } = comparison;
  if (bayesian) {
    return (
      <Cell label={label}>
        <Num value={bayesian.chanceToBeatControl}>{chance(bayesian.chanceToBeatControl)}</Num>
        {bayesian.reason && <small>{why(bayesian.reason)}</small>}
      </Cell>
    );
  }
  return (
    <Cell label={label}>
      <Num value={frequentist?.adjustedPValue}>{probability(frequentist?.adjustedPValue)}</Num>
      {sequential?.look && <small>look {sequential.look}: p <Num value={sequential.pValue}>{probability(sequential.pValue)}</Num></small>}
    </Cell>
  );
}

const words = { convertedVisitors: "Converted", views: "Views", clicks: "Clicks", submits: "Submits", completions: "Completions", conversions: "Conversions", contacts: "Contacts", goalsReached: "Goals" };

/** @type {Partial<Record<Count, string>>} */
const helped = { convertedVisitors: "converted", goalsReached: "goals" };

/** @typedef {keyof typeof words} Count */

/** Variations is the table of variations. Pictures are links: the policy of the page loads nothing from other hosts.
 * @param {{ results: Results, subject: Subject, route: Route, pictured?: Experiment["variations"] }} props */
export function Variations({ results, subject, route, pictured }) {
  const { kind } = subject;
  const measure = measureOf(results), name = measure.as;
  const estimates = results.variations.map(measure.of);
  const scale = scaleOf(estimates.flatMap((e) => [e.value, ...(e.interval || [])]).filter((x) => x !== null));
  const empty = results.totals.visitors === 0;
  const compared = !empty && results.variations.some((v) => v.comparison);
  const bayesian = results.methodology === "bayesian";
  /** @type {Count[]} */
  const counts = kind === "widget" ? /** @type {Count[]} */ (Object.keys(words).slice(1)) : ["convertedVisitors", "goalsReached"];
  const proof = bayesian ? "Chance to beat control" : "p-value";
  const heads = ["Variation", "Visitors", ...counts.map((n) => words[n]), "Value", measure.name, ...(compared ? [liftIn(results), proof, "Verdict"] : [])];
  const helps = ["", "visitors", ...counts.map((n) => helped[n] ?? ""), "value", results.question?.metric ? "" : name, ...(compared ? ["lift", bayesian ? "chance" : "pValue", "verdict"] : [])];
  return (
    <Part id="variations" title="Variations" open={kind === "widget" || empty}>
      <table class="cards" role="table" aria-labelledby="variations">
        <thead role="rowgroup"><tr role="row">{heads.map((h, i) => <th key={h} role="columnheader" scope="col" class={i > 0 && i < counts.length + 3 ? "n" : undefined}>{h}{helps[i] && <Help of={helps[i]} />}</th>)}</tr></thead>
        <tbody role="rowgroup">
          {results.variations.map((v, index) => {
            const estimate = measure.of(v), c = compared && v.comparison, picture = pictured?.find(({ id }) => id === v.id)?.imageUrl;
            return (
              <tr key={v.id} role="row" data-variation={v.id}>
                <th role="rowheader" scope="row"><Mark index={index} />{"\u00a0"}{v.name}{v.control && v.name.toLowerCase() !== "control" && <small>control</small>}{picture && <small><a href={picture} target="_blank" rel="noreferrer">picture<span class="hidden"> of {v.name}, in a new tab</span></a></small>}</th>
                <Cell label="Visitors" class="n"><Num value={v.visitors}>{count(v.visitors)}</Num></Cell>
                {counts.map((n) => <Cell key={n} label={words[n]} class="n"><Num value={v[n]}>{count(v[n])}</Num></Cell>)}
                <Cell label="Value" class="n"><Num value={v.value}>{money(v.value)}</Num></Cell>
                <Cell label={measure.name} class="wide">
                  <b><Num value={estimate.value}>{metric(name, estimate.value, estimate.interval)}</Num></b> {!empty && <small>{estimate.reason ? why(estimate.reason) : metricSpan(name, estimate.interval)}</small>}
                  <Bar scale={scale} estimate={estimate} index={index} name={name} label={measure.name} />
                </Cell>
                {compared && !c && <><Cell label="Lift" class="none">–</Cell><Cell label={proof} class="none">–</Cell><Cell label="Verdict" class="none">–</Cell></>}
                {c && <>
                  <Cell label={liftIn(results)} class="two"><Lift effect={c.improvement} /></Cell>
                  <Proof comparison={c} label={proof} />
                  <Cell label="Verdict" class="two"><Verdict comparison={c} conclusion={results.conclusion} /><DecidedOn variation={v} conclusion={results.conclusion} />{c.reasons.length > 0 && <small>{why(...c.reasons)}</small>}</Cell>
                </>}
              </tr>
            );
          })}
        </tbody>
        <tfoot role="rowgroup"><tr role="row">
          <th role="rowheader" scope="row">Total</th>
          <Cell label="Visitors" class="n"><Num value={results.totals.visitors}>{count(results.totals.visitors)}</Num></Cell>
          {counts.map((n) => (results.totals[n] === undefined ? <td key={n} role="cell" /> : <Cell key={n} label={words[n]} class="n"><Num value={results.totals[n]}>{count(results.totals[n])}</Num></Cell>))}
          <Cell label="Value" class="n"><Num value={results.totals.value}>{money(results.totals.value)}</Num></Cell>
          <td role="cell" class="wide axis-cell"><Axis scale={scale} write={(x) => (isRate(name) ? percent(x, 1) : money(x))} /></td>
          {compared && <td role="cell" colSpan={3} />}
        </tr></tfoot>
      </table>
      {results.totals.value !== 0 && <Values {...{ subject, route }} />}
      {results.variations[0]?.clicks !== undefined && <Funnel results={results} />}
    </Part>
  );
}
