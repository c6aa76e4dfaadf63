// @ts-check
/** @import { Route } from "./route.js" */
/** @import { Go } from "./types.d.ts" */

const from = "filters[dateFrom]", to = "filters[dateTo]";
export const dates = [from, to];
const lengths = [7, 14, 28];

/** Period chooses the last full days, in the time zone of the website.
 * @param {{ route: Route, go: Go, timezone?: string }} props */
export function Period({ route, go, timezone = "UTC" }) {
  /** @param {number} days */
  const daysAgo = (days) => new Date(Date.now() - days * 86400000).toLocaleDateString("sv-SE", { timeZone: timezone });
  const yesterday = daysAgo(1), first = route.get(from)?.slice(0, 10), last = route.get(to)?.slice(0, 10);
  const chosen = !first && !last ? "" : lengths.find((n) => first === daysAgo(n) && last === yesterday) ?? "own";
  /** @param {string} days */
  const set = (days) => go(days ? route.with(from, daysAgo(Number(days))).with(to, yesterday) : route.without(from).without(to));
  return (
    <label>Period <select name="period" value={String(chosen)} onChange={(e) => set(e.currentTarget.value)}>
      <option value="">all time</option>
      {lengths.map((n) => <option key={n} value={n}>last {n} days</option>)}
      {chosen === "own" && <option value="own" disabled>own dates</option>}
    </select></label>
  );
}

/** Clock says when the dates of a report begin.
 * @param {{ timezone: string }} props */
export const Clock = ({ timezone }) => <p class="quiet clock">These dates begin at midnight in {timezone}. Days, weeks and looks are in UTC.</p>;
