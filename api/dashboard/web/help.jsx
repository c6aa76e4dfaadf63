// @ts-check
import { useId } from "preact/hooks";
import { terms } from "./help.js";

/** Help is a button that shows what a term means. The browser closes the text with Escape
 * or a click elsewhere.
 * @param {{ of: keyof typeof terms }} props */
export function Help({ of }) {
  const id = "help-" + useId(), [title, meaning] = terms[of];
  return (
    <>
      <button type="button" class="help" popovertarget={id} aria-label={`What is “${title}”?`}>?</button>
      <span id={id} class="help-text" popover="auto"><b>{title}</b>{meaning}</span>
    </>
  );
}

const sorted = Object.entries(terms).sort(([, [a]], [, [b]]) => a.localeCompare(b, "en"));

/** The terms of each method. */
const frequentist = ["lastLook", "pValue", "qValue", "intervals", "secondary"], bayesian = ["chance", "prior"];

/** Glossary lists all terms. On narrow screens, where tables have no heads, it replaces
 * their buttons.
 * @param {{ bayesian?: boolean }} props */
export const Glossary = ({ bayesian: only }) => (
  <details class="part glossary">
    <summary><h2>Terms</h2></summary>
    <dl>{sorted.filter(([term]) => !(only ? frequentist : bayesian).includes(term)).map(([, [title, meaning]]) => <div key={title}><dt>{title}</dt><dd>{meaning}</dd></div>)}</dl>
  </details>
);
