// @ts-check
/** @import { Route } from "./route.js" */
/** @import { Go } from "./types.d.ts" */

const from = "filters[dateFrom]", to = "filters[dateTo]";
const lengths = [7, 14, 28];

/** daysAgo returns the date of a day before today, in UTC.
 * @param {number} days */
const daysAgo = (days) => new Date(Date.now() - days * 86400000).toISOString().slice(0, 10);

/** Period chooses the last full days, in UTC.
 * @param {{ route: Route, go: Go }} props */
export function Period({ route, go }) {
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

/** Clock says when the days of the report begin in the timezone of the website.
 * @param {{ timezone: string, day?: string }} props */
export function Clock({ timezone, day }) {
  const begin = new Date((day ?? daysAgo(0)) + "T00:00:00Z");
  if (Number.isNaN(begin.getTime())) return null;
  const time = begin.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: timezone });
  return <p class="quiet clock">Days are in UTC. They begin at {time} in {timezone}.</p>;
}
