// @ts-check
import { useId } from "preact/hooks";
import { number, probability } from "./format.js";
import { why } from "./words.js";

/** @import { Comparison, EvidenceOf } from "./types.d.ts" */

// The texts are those of engine/result/evidence.go.

/** The reasons whose bounds differ from those of a verdict.
 * @type {Record<string, string>} */
const own = {
  TOO_EARLY: "evidence needs 7 full days",
  TOO_FEW_CONVERSIONS: "evidence needs 25 conversions in the two variations",
  TOO_FEW_NONZERO: "evidence needs 100 visitors with a value in each variation",
};

const most = 1e15; // larger ratios are more than anybody reads

/** @param {number} x */
const ratio = (x) => (x < 10 ? number(x, 1) : Math.trunc(Math.min(x, most)).toLocaleString("en-US"));

/** wordOf says whether an answer holds.
 * @param {EvidenceOf} evidence */
export const wordOf = ({ holds }) => (holds ? "Holds" : "Describes");

/** evidenceText says how strong the evidence is and how strong it must be, or why there is none.
 * @param {EvidenceOf} evidence */
export function evidenceText({ ratio: x, needed, oneOf, reason }) {
  if (reason) return own[reason] ?? why(reason);
  return `evidence ${ratio(x)} : 1` + (needed === null || oneOf === null ? "" : `; a question as specific as this, one of about ${ratio(oneOf)}, needs ${ratio(needed)} : 1`);
}

/** Evidence says whether an answer without looks holds, and on demand why. That it describes is the usual case.
 * @param {{ comparison: Comparison }} props */
export function Evidence({ comparison: { evidence, bayesian } }) {
  const id = "evidence-" + useId();
  if (!evidence) return null;
  const { holds, pValue, reason } = evidence, word = wordOf(evidence);
  return (
    <>
      <button type="button" class={holds ? "evidence holds" : "evidence"} popovertarget={id}>{word}</button><span class="printed">{word}</span>
      <span id={id} class="help-text" popover="auto"><b>{word}</b><span class="why">{evidenceText(evidence)}.</span>
        {!reason && !bayesian && <span class="adjusted">p-value <data value={String(pValue)}>{probability(pValue)}</data>, adjusted for every question that could be asked.</span>}</span>
    </>
  );
}
