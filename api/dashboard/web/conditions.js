// @ts-check
import { quoted } from "./line.js";
import { labelOf } from "./words.js";

// A condition of visitors, in the language of metrics, as the filters of the page write it: comparisons joined by and.

/** joined adds a comparison to a condition.
 * @param {string | undefined} condition @param {string} comparison */
export const joined = (condition, comparison) => (condition ? [...termsOf(condition), comparison].join(" and ") : comparison);

/** compared writes a comparison of an attribute. A value with an asterisk is a pattern.
 * @param {string} attribute @param {string} value @param {boolean} not */
export function compared(attribute, value, not) {
  const like = value.includes("*");
  return `${attribute} ${like ? (not ? "not like" : "like") : not ? "!=" : "="} ${quoted(value)}`;
}

/** termsOf returns the comparisons that and joins. A condition with or is one term, in parentheses.
 * @param {string} condition
 * @returns {string[]} */
export function termsOf(condition) {
  /** @type {string[]} */
  const terms = [];
  let depth = 0, begin = 0;
  for (const { 0: word, index } of condition.matchAll(/'(?:[^']|'')*'?|[\p{L}\p{N}_:.-]+|[()]/gu)) {
    if (word === "(") depth++;
    if (word === ")") depth--;
    if (depth > 0) continue;
    if (word === "or") return [`(${condition.trim()})`];
    if (word !== "and") continue;
    terms.push(condition.slice(begin, index).trim());
    begin = index + word.length;
  }
  return [...terms, condition.slice(begin).trim()];
}

/** worded writes a comparison as words. Other conditions remain as they are.
 * @param {string} term */
export function worded(term) {
  const [, attribute, operator, value] = /^(\w+) (=|!=|like|not like) '((?:[^']|'')*)'$/.exec(term) ?? [];
  if (attribute === undefined) return term;
  const not = operator === "!=" || operator === "not like", text = value.replaceAll("''", "'");
  return `${labelOf(attribute)}: ${text ? (not ? "not " : "") + text : not ? "set" : "not set"}`;
}
