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

/** instant returns the instant at which a date begins, or ends with a number of days to
 * add. A time remains as it is.
 * @param {string} text @param {number} days */
const instant = (text, days) => new Date(text.length === 10 ? Date.parse(text) + days * 86400000 : text);

/** Clock says when the report begins and ends in the timezone of the website.
 * @param {{ timezone: string, route: Route }} props */
export function Clock({ timezone, route }) {
  /** @param {string} name @param {number} days */
  const local = (name, days) => {
    const text = route.get(name), time = instant(text ?? "", days);
    return text && !Number.isNaN(time.getTime()) ? time.toLocaleString("sv-SE", { dateStyle: "short", timeStyle: "short", timeZone: timezone }) : "";
  };
  const begin = local(from, 0), end = local(to, 1);
  if (!begin && !end) return null;
  return <p class="quiet clock">Days are in UTC. In {timezone}, this report is {begin && <>from <span class="at">{begin}</span></>}{begin && end && " "}{end && <>to <span class="at">{end}</span></>}.</p>;
}
