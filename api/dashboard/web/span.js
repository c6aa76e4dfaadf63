// @ts-check
import { minute } from "./format.js";

/** @import { LogEntry } from "./types.d.ts" */

const whole = /T00:00:00Z$/;

/** spanOf writes the time or the span of an annotation, in days (UTC) if it has whole ones.
 * @param {Pick<LogEntry, "startsAt" | "endsAt">} entry */
export function spanOf({ startsAt = "", endsAt }) {
  if (!whole.test(startsAt) || (endsAt && !whole.test(endsAt))) {
    if (!endsAt) return minute(startsAt);
    const sameDay = startsAt.slice(0, 10) === endsAt.slice(0, 10);
    return minute(startsAt).replace(sameDay ? " UTC" : "", "") + " to " + minute(endsAt).slice(sameDay ? 11 : 0);
  }
  const first = startsAt.slice(0, 10), last = endsAt ? new Date(Date.parse(endsAt) - 1).toISOString().slice(0, 10) : first;
  return first === last ? first : `${first} to ${last}`;
}
