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

const sorted = Object.values(terms).sort(([a], [b]) => a.localeCompare(b, "en"));

/** Glossary lists all terms. On narrow screens, where tables have no heads, it replaces
 * their buttons. */
export const Glossary = () => (
  <details class="part glossary">
    <summary><h2>Terms</h2></summary>
    <dl>{sorted.map(([title, meaning]) => <div key={title}><dt>{title}</dt><dd>{meaning}</dd></div>)}</dl>
  </details>
);
