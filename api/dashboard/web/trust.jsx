// @ts-check
import { minute, percent } from "./format.js";
import { Help } from "./help.jsx";
import { why } from "./words.js";

/** @import { ComponentChildren } from "preact" */
/** @import { Results } from "./types.d.ts" */

const signs = { fine: "✓", bad: "✗", warn: "!", open: "○" };
const meanings = { fine: "OK", bad: "failed", warn: "look", open: "not available yet" };

/** @param {{ state: keyof typeof signs, title: string, of?: string, children: ComponentChildren }} props */
const Trust = ({ state, title, of, children }) => (
  <li class={state}><b><span aria-hidden="true">{signs[state]}</span> {title}<span class="hidden">: {meanings[state]}</span></b>{of && <Help of={of} />} <span>{children}</span></li>
);

/** @param {{ results: Results }} props */
function Split({ results }) {
  const ratio = results.checks.sampleRatio;
  if (!ratio) return null;
  if (ratio.pValue === null) return <Trust state="open" title="Split" of="split">{why(ratio.reason)}</Trust>;
  return <Trust state={ratio.mismatch ? "bad" : "fine"} title="Split" of="split">{ratio.mismatch ? "sample ratio mismatch" : "as configured"}</Trust>;
}

/** weeks writes a number of full days in weeks and days.
 * @param {{ days: number, weeks: number }} full */
export function weeks({ days, weeks: whole }) {
  const rest = days - 7 * whole;
  const parts = [[whole, "week"], [rest, "day"]].filter(([n]) => n).map(([n, unit]) => `${n} ${unit}${n === 1 ? "" : "s"}`);
  return parts.join(" and ") || "no full day yet";
}

/** TrustStrip shows in one line whether the numbers can be trusted.
 * @param {{ results: Results, scored: Results | undefined }} props */
export function TrustStrip({ results, scored }) {
  const { multipleExposures: several } = results.checks, full = scored?.checks.fullWeeks;
  const silent = scored?.checks.warnings.find((w) => w.code === "SILENT");
  return (
    <ul class="trust" aria-label="Trust">
      <Split results={results} />
      <Trust state={several.warning ? "bad" : "fine"} title="Multi-exposed">{percent(several.share, 2)}</Trust>
      <Trust state={full ? (full.weeks > 0 ? "fine" : "warn") : "open"} title="Full weeks" of="fullWeeks">{full ? weeks(full) : "…"}</Trust>
      <Trust state={silent ? "warn" : "fine"} title="Newest event"><span class="at">{minute(results.newestEvent)}</span>{silent && ", none since"}</Trust>
    </ul>
  );
}
