// @ts-check
import { text } from "./format.js";
import { Help } from "./help.jsx";
import { Chip } from "./listing.jsx";
import { Decided, NextLook, Since } from "./looks.jsx";
import { conclusions } from "./words.js";

/** @import { Results } from "./types.d.ts" */

/** Worth shows what the variation of the decision is worth a month: what is expected first,
 * what was observed less prominently, and how that is known.
 * @param {{ scored: Results }} props */
function Worth({ scored }) {
  const item = scored.worth?.items.find((i) => i.variationId === scored.decision?.variationId);
  if (!item?.text) return null;
  return <p class="worth"><span>{text(item.text)}</span> <span class="quiet">{text(item.observedText)} {text(scored.worth?.poolText ?? "")}<Help of="worth" /></span></p>;
}

/** Answer is what to do, since which look, when the next look is, why, and what it is worth
 * a month. A report without a decision shows its conclusion.
 * @param {{ results: Results, scored: Results | undefined }} props */
export function Answer({ results, scored }) {
  const { conclusion } = results, decision = results.totals.visitors > 0 ? scored?.decision : undefined;
  if (!conclusion) return <p class="conclusion plain">These are the widget's own variations. Only its experiments are compared with control.</p>;
  const repeated = decision?.text.toLowerCase().includes(conclusion.text.toLowerCase().replace(/\.$/, ""));
  return (
    <div class={"conclusion " + (decision ? decision.status : conclusion.status)} role="status" aria-label="Conclusion">
      <p class="answer">{decision ? <Chip status={decision.status} /> : <b class="tag">{conclusion.reasons.includes("NOT_DECLARED") ? "No conclusion" : conclusions[conclusion.status]}</b>}
        {decision?.decidedAt && <span class="quiet" id="since">since <Since at={decision.decidedAt} looks={results.looks} /></span>}
        {results.nextLook && <span class="quiet"><span id="next-look"><NextLook nextLook={results.nextLook} /></span><Help of="look" /></span>}</p>
      {decision && <p class="answer-text" id="decision">{text(decision.text)}</p>}
      {decision && scored && <Worth scored={scored} />}
      <p id="conclusion" class={decision ? (repeated ? "hidden" : "why") : "answer-text"}>{text(conclusion.text)}</p>
      <Decided results={results} />
    </div>
  );
}
