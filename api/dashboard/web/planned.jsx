// @ts-check
import { count, isRate, lift, liftSpan, money, number, probability } from "./format.js";
import { Help } from "./help.jsx";
import { Num } from "./parts.jsx";
import { why } from "./words.js";

/** @import { ComponentChildren } from "preact" */
/** @import { Comparison, Conclusion, Results } from "./types.d.ts" */

/** lastDay returns the date of the day (UTC) that ends at a time.
 * @param {string} end */
export const lastDay = (end) => new Date(Date.parse(end) - 1).toISOString().slice(0, 10);

/** hasDecision reports whether there is a winner or a loser.
 * @param {Conclusion | null} conclusion */
export const hasDecision = (conclusion) => conclusion?.status === "winner" || conclusion?.status === "loser";

/** countsTowardsPlan reports whether the planned look counts the visitors of a report:
 * it has no filters, and the shares never changed.
 * @param {Results} results */
const countsTowardsPlan = ({ filters, window, plannedLook }) => Object.keys(filters).length === 0 && !window.from && !window.to && plannedLook?.segment === 1;

/** @param {{ children: ComponentChildren }} props */
const Look = ({ children }) => <p><span id="planned-look">{children}</span><Help of="plannedLook" /></p>;

/** PlannedLook shows when the planned look was, or what it still needs.
 * @param {{ results: Results }} props */
export function PlannedLook({ results }) {
  const look = results.plannedLook, visitors = results.totals.visitors;
  if (!look) return null;
  const required = look.requiredVisitors;
  if (required === null) return <Look>Planned look: none: {why(look.reason)}.</Look>;
  const planned = <Num value={required}>{count(required)}</Num>;
  const period = look.segment > 1 && <> in period {look.segment} of equal shares</>;
  if (look.time) return <Look>Planned look: <b class="at">{lastDay(look.time)}</b> (<Num value={look.visitors}>{count(look.visitors)}</Num> visitors; {planned} planned){period}.</Look>;
  if (!countsTowardsPlan(results)) return <Look>Planned look: not reached yet ({planned} visitors planned){period}.</Look>;
  const when = visitors >= required ? "at the end of the day in UTC" : "not reached yet";
  return <Look>Planned look: {when} (<Num value={visitors}>{count(visitors)}</Num> of {planned} visitors).</Look>;
}

/** figures returns the effect of a comparison with the interval and the p-value that a
 * conclusion needs.
 * @param {Comparison} c @param {Results} results */
function figures(c, { compareMetric, significanceLevel }) {
  const s = c.sequential, kind = `${significanceLevel}\u00a0% ${s?.plannedLook ? "" : "always-valid "}interval`;
  const p = `${s?.plannedLook ? "p" : "always-valid p"} = ${probability(s?.pValue)}`;
  const relative = c.improvement.observed ?? c.improvement.value;
  if (relative !== null && s?.improvement) return `uplift ${lift(relative, s.improvement)} (${kind} ${liftSpan(s.improvement)}), ${p}`;
  const rate = isRate(compareMetric ?? "");
  /** @param {number | null} x */
  const write = (x) => (x === null ? "open" : rate ? number(100 * x, 2) + "\u00a0points" : money(x));
  const difference = c.difference.observed ?? c.difference.value, ends = s?.difference;
  return `difference ${write(difference)}${ends ? ` (${kind} ${write(ends[0])} to ${write(ends[1])})` : ""}, ${p}`;
}

/** Decided shows the figures that decided beside those of today, if they differ.
 * @param {{ results: Results }} props */
export function Decided({ results }) {
  const c = results.conclusion, today = results.variations.find((v) => v.id === c?.variationId)?.comparison;
  if (!c?.decided || !c.decidedAt || !today) return null;
  const same = today.difference.value === c.decided.difference.value && today.sequential?.pValue === c.decided.sequential?.pValue;
  if (same) return null;
  return (
    <dl id="decided" class="quiet">
      <dt>Decided on <span class="at">{lastDay(c.decidedAt)}</span>{c.basis === "plannedLook" && ", the planned look"}</dt><dd>{figures(c.decided, results)}</dd>
      <dt>Today</dt><dd>{figures(today, results)}</dd>
    </dl>
  );
}
