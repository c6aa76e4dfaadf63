// @ts-check
import { useAnswer } from "./hooks.js";
import { follow } from "./route.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Go, Listed, Message } from "./types.d.ts" */

const key = "lifthouse.decisions"; // of the last visit with this browser

/** @type {Record<string, string> | null} */
const lastVisit = JSON.parse(localStorage.getItem(key) ?? "null");

/** @param {Listed} item */
const nameOf = ({ kind, id }) => kind + id;
/** @param {Listed} item */
const decisionOf = ({ status }) => [status?.decision?.status, status?.decision?.variationId, status?.decision?.decidedAt].join(" ");

/** isNew reports whether a decision is another one than at the last visit.
 * @param {Listed} item */
export const isNew = (item) => Boolean(lastVisit && item.status?.decision?.decidedAt && lastVisit[nameOf(item)] !== decisionOf(item));

/** remember keeps the decisions for the next visit.
 * @param {Listed[]} items */
export function remember(items) {
  const known = JSON.parse(localStorage.getItem(key) ?? "{}");
  for (const item of items) if (item.status?.decision) known[nameOf(item)] = decisionOf(item);
  localStorage.setItem(key, JSON.stringify(known));
}

/** @type {[string, string, string][]} */
const kinds = [["decision.changed", "decision", "decisions"], ["check.failed", "check failed", "checks failed"], ["campaign.stopped", "stopped", "stopped"]];

/** News says what changed on a website since yesterday. It is hidden if the token may not read it.
 * @param {{ website?: number, go: Go }} props */
export function News({ website, go }) {
  /** @type {Answer<Message[]>} */
  const { body } = useAnswer("/deliveries", { every: 30000 });
  if (!body) return null;
  const yesterday = new Date(Date.now() - 86400000).toISOString().slice(0, 10);
  const recent = body.filter((m) => m.recordedAt >= yesterday && (!website || !m.data.websiteId || m.data.websiteId === website));
  const found = kinds.map(([event, one, several]) => ({ messages: recent.filter((m) => m.event === event), one, several })).filter(({ messages }) => messages.length > 0);
  return (
    <p class="news">Since yesterday: {found.length === 0 ? "nothing changed" : found.map(({ messages, one, several }, i) => (
      <span key={one}>{i > 0 && ", "}<b>{messages.length} {messages.length === 1 ? one : several}</b> ({messages.map((m, at) => <span key={m.message}>{at > 0 && ", "}<a {...follow(go, m.path)}>{m.data.name}</a></span>)})</span>
    ))}.</p>
  );
}
