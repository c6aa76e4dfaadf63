// @ts-check
// A question in one line: metric [for visitors] [by attribute [, attribute]] [split text].

/** @import { Fault } from "./types.d.ts" */

/** Part is a part of a line, and how many characters are before it.
 * @typedef {{ text: string, from: number }} Part */

/** @typedef {Partial<Record<"metric" | "visitors" | "dimension" | "split", Part>>} Parts */

/** The keywords that begin a part, and the parameter that has it.
 * @type {[string, "visitors" | "dimension" | "split"][]} */
const keywords = [["for", "visitors"], ["by", "dimension"], ["split", "split"]];

/** lengthOf counts characters as the server does: code points.
 * @param {string} text */
export const lengthOf = (text) => [...text].length;

/** partsOf splits a line into the parameters of a report. A keyword in a text in quotes begins no part.
 * @param {string} line
 * @returns {Parts} */
export function partsOf(line) {
  /** @type {Parts} */
  const parts = {};
  /** @type {keyof Parts} */
  let part = "metric";
  let begin = 0, next = 0;
  /** @param {number} end */
  const keep = (end) => {
    const text = line.slice(begin, end), rest = text.trimStart();
    parts[part] = { text: rest.trimEnd(), from: lengthOf(line.slice(0, begin)) + lengthOf(text) - lengthOf(rest) };
  };
  for (const { 0: word, index } of line.matchAll(/'(?:[^']|'')*'?|[\p{L}\p{N}_:.-]+/gu)) {
    const at = keywords.findIndex(([k], i) => k === word && i >= next);
    if (at < 0) continue;
    keep(index);
    part = keywords[at][1];
    begin = index + word.length;
    next = at + 1;
  }
  keep(line.length);
  return parts;
}

/** parametersOf returns the parameters of a report that answers a question.
 * @param {Parts} parts
 * @returns {[string, string][]} */
export const parametersOf = (parts) => Object.entries(parts).map(([name, { text }]) => [name, name === "dimension" ? text.split(",").map((word) => word.trim()).join(",") : text]);

/** Placed is an error of a line: at is the number of characters before its place. It is undefined if the error is not
 * about the line.
 * @typedef {{ at?: number, text: string }} Placed */

/** placedIn returns the place of an error in the line. That of an error without a place is the beginning of its part.
 * @param {Parts} parts @param {Fault} fault
 * @returns {Placed} */
export function placedIn(parts, { name, detail }) {
  const part = parts[/** @type {keyof Parts} */ (name)];
  if (!part) return { text: `${name}: ${detail}` };
  const [, place, said] = /^at character (\d+): (.*)$/s.exec(detail) ?? [undefined, "1", detail];
  return { at: part.from + Number(place) - 1, text: said };
}

/** replaced returns a line in which a text replaces the characters between two places, and the place after it.
 * @param {string} line @param {number} from @param {number} to @param {string} text */
export function replaced(line, from, to, text) {
  const all = [...line];
  return { line: all.slice(0, from).join("") + text + all.slice(to).join(""), at: from + lengthOf(text) };
}

/** quoted writes a text as a literal.
 * @param {string} text */
export const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
