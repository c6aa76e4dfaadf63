// @ts-check
import { useRef } from "preact/hooks";
import { wordOf } from "./evidence.jsx";
import { comparedOf } from "./forest.jsx";
import { count, day, lift, liftSpan, text } from "./format.js";
import { Help } from "./help.jsx";
import { Decided, NextLook, Since } from "./looks.jsx";
import { Chip, Num } from "./parts.jsx";
import { conclusions, nextSteps, liftIn, verdictOf, viewOf } from "./words.js";

/** @import { Decision, Link, Results, WorthItem } from "./types.d.ts" */

/** useSteady keeps the answer until a look, a decision, the day or the view changes: numbers that move with each
 * visitor would only distract from it.
 * @param {Results} results @param {Results | undefined} scored */
function useSteady(results, scored) {
  const { decision } = scored ?? {}, kept = useRef({ key: "", results, scored });
  const key = JSON.stringify([viewOf(results), results.compareMetric, results.conclusion?.status, results.conclusion?.look, results.looks?.length, results.nextLook, day(results.dataThrough),
    scored && viewOf(scored), decision?.status, decision?.variationId, decision?.decidedAt, results.totals.visitors > 0]);
  if (kept.current.key !== key) kept.current = { key, results, scored };
  return kept.current;
}

/** Remaining is how long a campaign without a decision must run.
 * @param {{ power: Results["power"] }} props */
function Remaining({ power }) {
  if (!power?.remainingVisitors) return null;
  const { remainingVisitors: visitors, daysRemaining: days } = power;
  return <div><dt>Remaining</dt><dd><Num value={visitors}>{count(visitors)}</Num> visitors{days !== null && (days > 365 ? ", more than a year" : `, about ${count(days)} ${days === 1 ? "day" : "days"}`)}</dd></div>;
}

/** Exploration is a view of other visitors or of another metric: what it shows today, beside the decision about all
 * visitors, which it does not change.
 * @param {{ results: Results, decided: Results | undefined, all: Link }} props */
export function Exploration({ results, decided, all }) {
  const { decision } = decided ?? {}, invalid = results.conclusion?.status === "invalid";
  return (
    <div class={"conclusion exploration" + (invalid ? " invalid" : "")}>
      <p class="answer"><b class="tag">Exploration</b> <span class="quiet">{viewOf(results)}</span></p>
      <h2 class="answer-text" id="conclusion">{invalid ? text(results.conclusion?.text ?? "") : comparedOf(results).map(({ id, name, comparison: c }, i) => <span key={id}>{i > 0 && "; "}{name}: {verdictOf(c).word}{c.improvement.value !== null && `, ${liftIn(results).toLowerCase()} ${lift(c.improvement.value, c.improvement.interval)}${c.improvement.interval ? ` (${liftSpan(c.improvement.interval)})` : ""}`}{c.evidence && ` · ${wordOf(c.evidence)}`}</span>)}</h2>
      {decision && <p class="next" id="decision">It decides nothing. The decision about all visitors: <Chip status={decision.status} /> {text(decision.text)} <a {...all}>Show all visitors</a></p>}
    </div>
  );
}

/** Dates say since which look a decision stands. A better variation can be shipped later, when the guardrails are known to be
 * safe.
 * @param {{ results: Results, at: string, ship: boolean }} props */
function Dates({ results: { conclusion, looks }, at, ship }) {
  const better = conclusion?.decidedAt, earlier = ship && better && Date.parse(better) < Date.parse(at);
  return <span class="quiet" id="since">{earlier && <span class="long">better since <Since at={better} looks={looks} />; shippable </span>}since <Since at={at} looks={looks} />{earlier && <span class="long">, when the guardrails were known to be safe</span>}</span>;
}

/** mayLose reports whether a variation that is to be shipped may be worth less than nothing.
 * @param {Decision | null | undefined} decision @param {WorthItem | undefined} worth */
function mayLose(decision, worth) {
  const { valuePerMonth, perMonth } = worth?.expected ?? {};
  return decision?.status === "ship" && ((valuePerMonth ?? perMonth)?.interval[0] ?? 0) < 0;
}

/** Answer is what to do, for which visitors, worth how much a month, and since which look. How that is known is one click
 * away. A report without a decision shows its conclusion.
 * @param {{ results: Results, scored: Results | undefined }} props */
export function Answer(props) {
  const { results, scored } = useSteady(props.results, props.scored);
  const { conclusion, nextLook } = results, decision = results.totals.visitors > 0 ? scored?.decision : undefined;
  if (!conclusion) return <p class="conclusion plain">These are the widget's own variations. Only its experiments are compared with control.</p>;
  const said = decision?.text ?? conclusion.text, worth = scored?.worth?.items.find((i) => i.variationId === decision?.variationId);
  const next = decision && nextSteps[decision.status];
  return (
    <div class={"conclusion " + (decision ? decision.status : conclusion.status)}>
      <p class="answer">{decision ? <Chip status={decision.status} /> : <b class="tag">{conclusions[conclusion.status]}</b>}
        {decision?.decidedAt && <Dates results={results} at={decision.decidedAt} ship={decision.status === "ship"} />}
        {decision && nextLook && decision.status !== "invalid" && !said.includes("next look") && <span class="quiet" id="next-look">Next look <NextLook nextLook={nextLook} /></span>}</p>
      <h2 class="answer-text" id="decision">{decision ? text(said) : <span id="conclusion">{text(said)}</span>}</h2>
      {next && <p class="next">{next}</p>}
      {decision && <dl class="answers">
        {decision.decidedAt && <div class="for"><dt>For</dt><dd>all visitors</dd></div>}
        {worth?.text && <div><dt>Worth<Help of="worth" /></dt><dd class="worth"><span>{text(worth.text)}</span>{mayLose(decision, worth) && <small class="quiet"> The look is sure of its sign; how much is not yet known.</small>}</dd></div>}
        {decision.status === "keepRunning" && <Remaining power={results.power} />}
      </dl>}
      {decision && <details id="evidence"><summary>How we know</summary>
        <p id="conclusion">{text(conclusion.text)}</p>
        <Decided results={results} />
        {worth?.text && <p class="quiet">{text(worth.observedText)} {text(scored?.worth?.poolText ?? "")}</p>}
      </details>}
      <p class="hidden" role="status">{said}</p>
    </div>
  );
}
