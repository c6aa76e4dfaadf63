// @ts-check
import { count, decimals, minute, money, number, percent, pInWords } from "./format.js";
import { Help } from "./help.jsx";
import { Looks } from "./looks.jsx";
import { Num, Part } from "./parts.jsx";
import { Cause, SplitOverTime } from "./split.jsx";
import { why } from "./words.js";

/** @import { ComponentChildren } from "preact" */
/** @import { Route } from "./route.js" */
/** @import { Results, Subject } from "./types.d.ts" */

const title = "Progress and looks";
const signs = { fine: ["✓", ": OK"], bad: ["!", ": needs attention"], open: ["○", ": not available yet"] };

/** @param {{ good?: boolean, open?: boolean, title: string, of?: string, more?: ComponentChildren, children: ComponentChildren }} props */
function Check({ good, open, title, of, more, children }) {
  const state = open ? "open" : good ? "fine" : "bad";
  const [sign, words] = signs[state];
  return <li class={state}><b><span aria-hidden="true">{sign}</span> {title}<span class="hidden">{words}</span></b>{of && <Help of={of} />}<p>{children}</p>{more}</li>;
}

const srm = "Sample ratio mismatch (SRM)";

/** @param {{ results: Results, subject: Subject, route: Route, bayesian: boolean }} props */
function SampleRatio({ results, subject, route, bayesian }) {
  const { variations, checks: { sampleRatio: check, splitCause: cause } } = results;
  if (!check) return null;
  if (check.pValue === null) return <Check open title={srm} of="split">Not available: {why(check.reason)}.</Check>;
  return (
    <Check good={!check.mismatch} title={srm} of="split" more={<>{cause && <Cause {...{ cause, variations }} />}<SplitOverTime {...{ results, subject, route }} /></>}>
      {check.mismatch ? "The split of visitors does not match the configured shares. Some visitors are lost or counted twice, for example because of a redirect, a slow variation or bots. Do not trust these numbers until you find the cause. " : "No mismatch: the split of visitors matches the configured shares. "}
      {variations.map((v, i) => `${v.name}: ${count(check.observed?.[i])} (${money(check.expected?.[i], 0)} expected)`).join("; ")}{!bayesian && <>; <span class="at">p <Num value={check.pValue}>{pInWords(check.pValue)}</Num></span></>}.
    </Check>
  );
}

/** The warnings that are checks of their own.
 * @type {Record<string, string>} */
const days = { DAYS_WITHOUT_VISITORS: "Days without visitors", VARIATION_WITHOUT_VISITORS: "Variation without visitors" };

const late = 300000; // milliseconds that events may wait until it is a failed check

/** isLate reports whether the store does not answer, or events have waited for long. That some wait is said above.
 * @param {Results} results */
const isLate = ({ stale, waiting, dataThrough }) => stale && (!waiting || Date.now() - Date.parse(dataThrough ?? "") > late);

/** Checks shows the data quality checks.
 * @param {{ results: Results, subject: Subject, route: Route }} props */
export function Checks({ results, subject, route }) {
  const { checks } = results, several = checks.multipleExposures;
  const warnings = checks.warnings.filter((w) => !["SAMPLE_RATIO_MISMATCH", "EVENTS_WAITING"].includes(w.code) && !(w.code in days)); // shown elsewhere
  const silent = checks.warnings.filter((w) => w.code in days);
  const failed = isLate(results) || silent.length > 0 || checks.sampleRatio?.mismatch || several.warning || checks.automated?.warning || checks.leak.length > 0 || checks.unknownVariations.length > 0;
  return (
    <Part id="health" title="Health" open={failed}>
      <ul class="checks">
        <SampleRatio {...{ results, subject, route }} bayesian={results.methodology === "bayesian"} />
        {silent.map(({ code, message }) => <Check key={message} title={days[code]}>{message[0].toUpperCase() + message.slice(1)}.</Check>)}
        <Check good={!several.warning} title="Multi-exposed visitors" of="multiExposed">
          {several.visitors === 0 ? "None." : <><Num value={several.visitors}>{count(several.visitors)}</Num> visitors ({percent(several.share, 2)}) saw more than one variation. {several.rule === "exclude" ? "They are excluded." : "They count for the first variation they saw."}</>}
        </Check>
        {checks.automated && <Check good={!checks.automated.warning} title="Automated visitors">{count(checks.automated.visitors)} visitors have more events than people have. They count nowhere.</Check>}
        {checks.leak.length > 0 && <Check title="Unexpected visitors">{checks.leak.map((l) => `Variation ${results.variations.find((v) => v.id === l.variationId)?.name ?? l.variationId} has no share of the traffic but ${count(l.visitors)} visitors`).join("; ")}.</Check>}
        {checks.unknownVariations.length > 0 && <Check title="Unknown variations">{checks.unknownVariations.map((u) => `Variation ${u.variationId} is not in the catalogue but has ${count(u.visitors)} visitors`).join("; ")}.</Check>}
        {checks.outliers && <Check good title="Outliers" of="outliers">{count(checks.outliers.removed)} goal events are excluded.{checks.outliers.lower !== null && checks.outliers.upper !== null && ` Values from ${money(checks.outliers.lower)} to ${money(checks.outliers.upper)} count.`}{checks.outliers.reason && ` Reason: ${why(checks.outliers.reason)}.`}</Check>}
        {checks.cap && <Check good title="Cap" of="cap">{checks.cap.reason === "RATE_UNKNOWN" ? `${checks.cap.rule} is not applied: there is no rate for amounts in other currencies.` : checks.cap.amount === null ? `Nothing is capped: fewer than one converted visitor is above ${checks.cap.rule}.` : `At most ${money(checks.cap.amount)} counts for each visitor (${checks.cap.rule}). ${count(checks.cap.visitors)} visitors have more; ${money(checks.cap.valueRemoved)} was removed.`}</Check>}
        {checks.window.earlierVisitors > 0 && <Check good title="Exposed before the window" of="earlier">{count(checks.window.earlierVisitors)} visitors of the window were first exposed before it. They are excluded.</Check>}
        <Check good={!isLate(results)} open={!results.dataThrough} title="Freshness" of="dataThrough">
          {results.stale && !results.waiting ? "The store is unavailable. These are the last available results. " : ""}{results.dataThrough ? <>Includes events accepted until <span class="at">{minute(results.dataThrough)}</span>. The newest event is of <span class="at">{minute(results.newestEvent)}</span>.</> : "No events yet."}
        </Check>
      </ul>
      {warnings.length > 0 && <div class="notice warn"><b>Warnings</b><ul>{warnings.map((w) => <li key={w.message}>{w.message}</li>)}</ul></div>}
    </Part>
  );
}

/** Waiting says what a week without the best variation costs, if its effect is as expected.
 * @param {{ scored: Results }} props */
function Waiting({ scored }) {
  const items = scored.worth?.items ?? [], inValue = items.some((i) => i.expected?.valuePerMonth);
  const best = Math.max(0, ...items.map((i) => (inValue ? i.expected?.valuePerMonth : i.expected?.perMonth)?.value ?? 0));
  if (best <= 0 || scored.decision?.status !== "keepRunning") return null;
  const week = best * 7 / 30;
  return <p>If the effect is as expected, each week of waiting costs about <Num value={week}>{number(week, decimals(week / 2))}</Num> {inValue ? scored.worth?.currency || "in value" : "in the primary metric"}{items[0]?.of === "tested" && ", for the visitors like those in the test"}.<Help of="waiting" /></p>;
}

/** Progress shows the progress towards the required sample size, and the looks.
 * @param {{ results: Results, scored?: Results }} props */
export function Progress({ results, scored }) {
  const { power } = results;
  if (!power) return null;
  if (power.requiredVisitors === null) return <Part id="progress" title={title}><p>The required sample size cannot be computed: {why(power.reason)}.</p><Looks results={results} /></Part>;
  const left = power.remainingVisitors !== null && power.remainingVisitors > 0;
  return (
    <Part id="progress" title={title} open={scored?.decision?.status === "keepRunning"}>
      <progress max="1" value={Math.min(power.progress ?? 0, 1)} aria-label="Progress towards the required sample size" />
      <p><b><Num value={power.progress}>{percent(power.progress, 0)}</Num></b> of <Num value={power.requiredVisitors}>{count(power.requiredVisitors)}</Num> required visitors<Help of="required" />.{" "}
        {left ? <><Num value={power.remainingVisitors}>{count(power.remainingVisitors)}</Num> remaining{power.daysRemaining !== null && <>, {power.daysRemaining > 365 ? "more than a year at this traffic: " : "about "}<b><Num value={power.daysRemaining}>{count(power.daysRemaining)}</Num> {power.daysRemaining === 1 ? "day" : "days"}</b> at last week's rate</>}.</> : "The required sample size is reached."}</p>
      <Looks results={results} />
      {scored && <Waiting scored={scored} />}
      <p class="quiet">{power.minimumDetectableEffect !== null && <>Minimum detectable lift so far<Help of="detectable" />: {percent(power.minimumDetectableEffect)}. </>}
        {power.power !== null && <>Power for the planned lift<Help of="power" />: {percent(power.power, 0)}. </>}{power.reason && `Reason: ${why(power.reason)}.`}</p>
    </Part>
  );
}
