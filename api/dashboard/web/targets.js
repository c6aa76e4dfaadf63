// @ts-check
// What the search finds.
import { to } from "./route.js";

/** @import { ResultItem, Website } from "./types.d.ts" */

/** Target is a page of the account. words are the lower-case texts by which it is found: its name first.
 * @typedef {{ name: string, about: string, address: string, words: string[] }} Target */

const most = 50; // targets of a list

/** targetsOf returns all targets: websites, campaigns and experiments, and the owners and tags of each website.
 * @param {Pick<Website, "id" | "domain">[]} websites @param {Partial<ResultItem>[]} items
 * @returns {Target[]} */
export function targetsOf(websites, items) {
  const domains = new Map(websites.map(({ id, domain }) => [id, domain])), several = websites.length > 1;
  /** @param {number} id @returns {[string, number][]} */
  const place = (id) => (several ? [["websiteId", id]] : []);
  /** @type {Map<string, Target>} */
  const groups = new Map();
  /** @param {string} kind @param {"owner" | "tag"} parameter @param {string} value @param {number} website */
  const group = (kind, parameter, value, website) => {
    const address = to([...place(website), [parameter, value]]);
    groups.set(address, { name: kind + value, about: domains.get(website) ?? "", address, words: [value.toLowerCase()] });
  };
  const found = websites.map(({ id, domain }) => ({ name: domain, about: "website", address: to([["websiteId", id]]), words: [domain.toLowerCase()] }));
  for (const { websiteId = 0, campaignId, widgetId, experimentId, name = "", key, owner, tags = [], archived } of items) {
    if (archived) continue;
    /** @type {[string, number][]} */
    const subject = campaignId ? [["campaign", campaignId]] : [["widget", widgetId ?? 0], ["experiment", experimentId ?? 0]];
    const about = [several && domains.get(websiteId), key ?? campaignId ?? `${widgetId}/${experimentId}`, owner, ...tags.map((t) => "#" + t)].filter(Boolean).join(" · ");
    found.push({ name, about, address: to([...subject, ...place(websiteId)]), words: [name, key ?? "", String(campaignId ?? ""), owner ?? "", ...tags.map((t) => "#" + t)].map((w) => w.toLowerCase()) });
    if (owner) group("Owner ", "owner", owner, websiteId);
    for (const tag of tags) group("#", "tag", tag, websiteId);
  }
  return [...found, ...groups.values()];
}

/** found returns the targets that have all words of a text: those whose name begins with it first, then those whose name
 * has it.
 * @param {Target[]} targets @param {string} text */
export function found(targets, text) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean), whole = wanted.join(" ");
  /** @param {Target} target */
  const rank = ({ words: [name] }) => (name.startsWith(whole) ? 0 : name.includes(whole) ? 1 : 2);
  return targets.filter(({ words, about }) => wanted.every((w) => words.some((word) => word.includes(w)) || about.toLowerCase().includes(w)))
    .map((target, i) => ({ target, i })).sort((a, b) => rank(a.target) - rank(b.target) || a.i - b.i).slice(0, most).map(({ target }) => target);
}
