// @ts-check
/** @import { Item, Listed, Status } from "./types.d.ts" */

/** The groups of the start page, in their order, and what each contains. */
export const groups = /** @type {const} */ ({
  attention: ["Needs attention", "A check has failed. Find the cause before you use the numbers."],
  decide: ["To decide", "The looks permit a decision, or the plan has ended."],
  running: ["Running", "No look has decided yet."],
  waiting: ["Waiting for the first event", "Running, but no event has arrived yet."],
  computing: ["Being computed", "The server computes these reports now."],
  notStarted: ["Not started", "Nothing is shown to visitors yet."],
  done: ["Done", "Stopped."],
});

/** @typedef {keyof typeof groups} Group */

/** placeOf returns the parameters of the page with the decision of an item: that of a widget is
 * the decision of an experiment.
 * @param {Listed} item
 * @returns {[string, string | number][]} */
export const placeOf = ({ kind, id, status }) => [[kind, id], ...(status?.experimentId ? [/** @type {[string, number]} */ (["experiment", status.experimentId])] : [])];

/** The warnings that do not make the numbers wrong. */
const quiet = ["SILENT", "DECLARED_LATE"];

const decided = ["ship", "rollBack", "noDifference", "noWinner"];

/** groupOf returns the group of a campaign or widget. Missing events and late declarations
 * are shown, but are no reason for the group "Needs attention".
 * @param {Listed} item
 * @returns {Group} */
export function groupOf({ active, startDate, status }) {
  if (!active) return startDate ? "done" : "notStarted";
  if (status?.reason === "NOT_COMPUTED") return "computing";
  if (status?.health.includes("NO_EVENTS")) return "waiting";
  if (status?.decision?.status === "invalid" || status?.health.some((code) => !quiet.includes(code))) return "attention";
  return decided.includes(status?.decision?.status ?? "") ? "decide" : "running";
}

const urgency = ["ship", "rollBack", "invalid", "noDifference", "noWinner", "keepRunning"];

/** mostUrgent returns the status of the experiments of a widget that comes first in the
 * order ship, roll back, invalid, no difference, no winner, keep running.
 * @param {Status[]} statuses */
export function mostUrgent(statuses) {
  /** @param {Status} s */
  const rank = (s) => (s.decision ? urgency.indexOf(s.decision.status) : urgency.length);
  return statuses.reduce((/** @type {Status | undefined} */ found, s) => (found && rank(found) <= rank(s) ? found : s), undefined);
}

/** listed returns an item with the status that the start page shows.
 * @param {"campaign" | "widget"} kind @param {Item} item
 * @returns {Listed} */
export const listed = (kind, item) => ({ ...item, kind, status: Array.isArray(item.status) ? mostUrgent(item.status) : item.status });

/** The columns that the start page can be sorted by. An unknown value comes last.
 * @type {Record<string, (item: Listed) => number | string | null | undefined>} */
export const orders = {
  name: (item) => item.name.toLowerCase(),
  lift: (item) => item.status?.lift?.value,
  visitors: (item) => item.status?.visitors,
  days: (item) => item.status?.days,
};

/** sorted returns the items in the order of a column; a leading "-" reverses it.
 * @param {Listed[]} items @param {string} [by] */
export function sorted(items, by = "") {
  const down = by.startsWith("-"), of = orders[down ? by.slice(1) : by];
  if (!of) return items;
  return items.toSorted((a, b) => {
    const x = of(a), y = of(b), missing = Number(x === null || x === undefined) - Number(y === null || y === undefined);
    if (missing || x === y || x === null || x === undefined || y === null || y === undefined) return missing;
    return (x < y ? -1 : 1) * (down ? -1 : 1);
  });
}

/** matches reports whether an item has the searched text and the chosen owner and tag.
 * @param {Listed} item @param {{ search?: string, owner?: string, tag?: string }} wanted */
export function matches(item, { search, owner, tag }) {
  const text = [item.name, item.key, item.owner, item.hypothesis, ...(item.tags ?? [])].join("\n").toLowerCase();
  return (!search || text.includes(search.toLowerCase()) || String(item.id) === search) && (!owner || item.owner === owner) && (!tag || Boolean(item.tags?.includes(tag)));
}
