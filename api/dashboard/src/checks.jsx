import { count, minute, money, percent, probability } from "./format.js";
import { Num } from "./parts.jsx";
import { why } from "./words.js";

const signs = { fine: ["✓", ": fine"], bad: ["!", ": look at this"], open: ["○", ": cannot be told yet"] };

function Check({ good, open, title, children }) {
  const state = open ? "open" : good ? "fine" : "bad";
  const [sign, words] = signs[state];
  return <li class={state}><b><span aria-hidden="true">{sign}</span> {title}<span class="hidden">{words}</span></b><p>{children}</p></li>;
}

function SampleRatio({ check, variations }) {
  if (!check) return null;
  if (check.pValue === null) return <Check open title="Traffic split">Cannot be judged: {why(check.reason)}.</Check>;
  return (
    <Check good={!check.mismatch} title="Traffic split">
      {check.mismatch ? "Visitors did not fall on the variations as their shares say. Something loses or doubles visitors of one of them, such as a redirect, a slow variation or a robot, so that no number here can be trusted until it is found. " : "Visitors fell on the variations as their shares say. "}
      {variations.map((v, i) => `${v.name} ${count(check.observed[i])} of ${money(check.expected[i], 0)} expected`).join("; ")}; <span class="at">p = <Num value={check.pValue}>{probability(check.pValue)}</Num></span>.
    </Check>
  );
}

export function Checks({ results }) {
  const { checks } = results, several = checks.multipleExposures;
  const warnings = checks.warnings.filter((w) => w.code !== "SAMPLE_RATIO_MISMATCH"); // told above
  return (
    <section aria-labelledby="health">
      <h2 id="health">Health</h2>
      <ul class="checks">
        <SampleRatio check={checks.sampleRatio} variations={results.variations} />
        <Check good={!several.warning} title="More than one variation seen">
          {several.visitors === 0 ? "Nobody did." : <><Num value={several.visitors}>{count(several.visitors)}</Num> visitors ({percent(several.share, 2)}) saw more than one variation and {several.rule === "exclude" ? "are left out" : "count for the first one they saw"}.</>}
        </Check>
        {checks.leak.length > 0 && <Check title="Visitors where none should be">{checks.leak.map((l) => `Variation ${l.variationId} has no share, and ${count(l.visitors)} visitors`).join("; ")}.</Check>}
        {checks.unknownVariations.length > 0 && <Check title="Unknown variations">{checks.unknownVariations.map((u) => `Variation ${u.variationId} is not in the catalogue, and ${count(u.visitors)} visitors saw it`).join("; ")}.</Check>}
        {checks.outliers && <Check good title="Outliers">{count(checks.outliers.removed)} goal events were left out{checks.outliers.lower !== null && checks.outliers.upper !== null && `; those of ${money(checks.outliers.lower)} to ${money(checks.outliers.upper)} count`}.{checks.outliers.reason && " " + why(checks.outliers.reason)}</Check>}
        {checks.window.earlierVisitors > 0 && <Check good title="First seen before the window">{count(checks.window.earlierVisitors)} visitors came in the window and were first seen before it; they are not in these results.</Check>}
        <Check good={!results.stale} open={!results.dataThrough} title="Freshness">
          {results.stale ? "The store does not answer; this is the last good answer. " : ""}{results.dataThrough ? <>Events taken until <span class="at">{minute(results.dataThrough)}</span>; the newest happened <span class="at">{minute(results.newestEvent)}</span>.</> : "No event has come yet."}
        </Check>
      </ul>
      {warnings.length > 0 && <div class="notice warn"><b>Warnings</b><ul>{warnings.map((w) => <li key={w.code}>{w.message}</li>)}</ul></div>}
    </section>
  );
}

export function Progress({ power }) {
  if (!power) return null;
  if (power.requiredVisitors === null) return <section aria-labelledby="progress"><h2 id="progress">Progress</h2><p>How many visitors are needed cannot be told: {why(power.reason)}.</p></section>;
  const left = power.remainingVisitors > 0;
  return (
    <section aria-labelledby="progress">
      <h2 id="progress">Progress</h2>
      <progress max="1" value={Math.min(power.progress, 1)} aria-label="Visitors of the sample that is needed" />
      <p><b><Num value={power.progress}>{percent(power.progress, 0)}</Num></b> of the <Num value={power.requiredVisitors}>{count(power.requiredVisitors)}</Num> visitors that are needed.{" "}
        {left ? <><Num value={power.remainingVisitors}>{count(power.remainingVisitors)}</Num> to come{power.daysRemaining !== null && <>, about <b><Num value={power.daysRemaining}>{count(power.daysRemaining)}</Num> {power.daysRemaining === 1 ? "day" : "days"}</b> at last week's pace</>}.</> : "The sample is complete."}</p>
      <p class="quiet">{power.minimumDetectableEffect !== null && <>So far a lift of {percent(power.minimumDetectableEffect)} would be found. </>}
        {power.power !== null && <>The chance to find the planned one is {percent(power.power, 0)}. </>}{power.reason && why(power.reason)}</p>
    </section>
  );
}
