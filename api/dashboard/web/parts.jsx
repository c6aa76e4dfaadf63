// @ts-check
import { useEffect, useRef, useState } from "preact/hooks";
import { refresh } from "./hooks.js";
import { decisions } from "./words.js";

/** @import { ComponentChildren, TargetedEvent, TargetedMouseEvent } from "preact" */
/** @import { Problem } from "./api.js" */
/** @import { Link } from "./types.d.ts" */

/** Num shows a formatted number and contains its exact value.
 * @param {{ value: number | null | undefined, children: ComponentChildren }} props */
export const Num = ({ value, children }) => (value === null || value === undefined ? <span>{children}</span> : <data value={String(value)}>{children}</data>);

/** hint describes what to do about an error.
 * @param {Problem} error
 * @param {boolean} retried */
function hint({ status, wait }, retried) {
  const soon = retried ? ` This page retries automatically${wait > 1 ? ` in ${wait} seconds` : ""}.` : " Try again in a moment.";
  if (status === 429) return "This token has reached its rate limit. Other tabs count, too." + soon;
  if (status === 503) return "The server is overloaded, starting or stopping." + soon;
  if (status === 0 || status > 500) return soon.trim();
  if (status === 500) return "This is a bug in the server. Its log contains this request id." + soon;
  return undefined;
}

/** @type {Record<number, string>} */
const titles = { 0: "No response", 400: "Invalid request", 404: "Not found", 429: "Too many requests", 503: "Service unavailable" };

/** Fault shows an error. If the request is invalid, reset links to the view without
 * settings.
 * @param {{ error: Problem, again?: () => unknown, reset?: Link }} props */
export function Fault({ error, again, reset }) {
  const hopeless = error.status === 400 || error.status === 404;
  return (
    <div class="notice bad" role="alert">
      <p><b>{/^(filters\[|visitors$)/.test(error.faults[0]?.name ?? "") ? "Invalid filter" : titles[error.status] || error.title || "Request failed"}</b>: {error.message}</p>
      {hint(error, Boolean(again)) && <p>{hint(error, Boolean(again))}</p>}
      {error.faults.length > 0 && (
        <ul>{error.faults.map((f) => <li key={f.name + f.detail}><code>{f.name}</code> is <code>{f.value || "empty"}</code>: {f.detail}</li>)}</ul>
      )}
      {error.requestId && <p class="quiet">Request id: {error.requestId}</p>}
      {again && !hopeless && <button type="button" onClick={again}>Retry now</button>}
      {reset && error.status === 400 && <p><a {...reset}>Reset filters and settings</a></p>}
    </div>
  );
}

/** @param {{ what: string }} props */
export const Loading = ({ what }) => <p class="loading">Loading {what} …</p>;

/** @param {{ children: ComponentChildren }} props */
export const Empty = ({ children }) => <p class="empty">{children}</p>;

/** Part is a part of the page that is closed at first, unless open is set.
 * @param {{ id: string, title: ComponentChildren, open?: boolean, onToggle?: (event: TargetedEvent<HTMLDetailsElement>) => void, children: ComponentChildren }} props */
export const Part = ({ id, title, open, onToggle, children }) => (
  <details class="part" aria-labelledby={id} open={open} onToggle={onToggle}><summary><h2 id={id}>{title}</h2></summary>{children}</details>
);

/** DataTable is a table that scrolls in a box of its own. heads are those of its columns; tall limits its height.
 * @param {{ label: string, heads: ComponentChildren[], tall?: boolean, children: ComponentChildren }} props */
export const DataTable = ({ label, heads, tall, children }) => (
  <div class={tall ? "scroll tall" : "scroll"} tabIndex={0} role="region" aria-label={label}>
    <table><thead><tr>{heads.map((head, i) => <th key={i} scope="col">{head}</th>)}</tr></thead><tbody>{children}</tbody></table>
  </div>
);

/** Pause stops and resumes the refreshes of the page. */
export function Pause() {
  const [paused, set] = useState(refresh.paused);
  const change = () => { refresh.pause(!paused); set(!paused); };
  return <><span>{paused ? "refreshes are paused" : "refreshes every 5 s"}</span> <button type="button" class="link" id="pause" aria-pressed={paused} onClick={change}>{paused ? "Resume" : "Pause"}</button></>;
}

/** Chip is a decision in a few words.
 * @param {{ status: keyof typeof decisions, words?: string }} props */
export const Chip = ({ status, words = decisions[status] }) => <span class={"chip " + status}>{words}</span>;

/** State shows whether a campaign, widget or experiment is running.
 * @param {{ active: boolean, startDate?: string }} props */
export function State({ active, startDate }) {
  if (active) return <span class="state on">● running</span>;
  return <span class="state">{startDate ? "■ stopped" : "○ not started"}</span>;
}

/** leave closes the dialog that contains a button. The browser restores the focus.
 * @param {TargetedMouseEvent<HTMLButtonElement>} event */
export const leave = (event) => event.currentTarget.closest("dialog")?.close();

/** Dialog is a modal dialog of the browser, which traps the focus.
 * @param {{ title: string, onClose: () => void, children: ComponentChildren }} props */
export function Dialog({ title, onClose, children }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => { ref.current?.showModal(); }, []);
  return (
    <dialog ref={ref} onClose={onClose} aria-labelledby="dialog-title">
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

/** Copied is a button that copies a text.
 * @param {{ text: string, label: string }} props */
export function Copied({ text, label }) {
  const [said, say] = useState("");
  const copy = () => navigator.clipboard.writeText(text).then(() => say("Copied"), () => say("Copy failed. Select and copy the text."));
  return <p class="copy"><button type="button" onClick={copy}>{label}</button> <span role="status">{said}</span></p>;
}

const shapes = ["M2 2h8v8H2z", "M6 1l5 10H1z", "M6 1a5 5 0 1 0 .01 0z", "M6 0l6 6-6 6-6-6z", "M4 1h4v3h3v4H8v3H4V8H1V4h3z", "M6 11L1 1h10z"];
/** hue returns the class of the colour of a variation.
 * @param {number} index */
export const hue = (index) => "v" + (index % 6);
/** Mark is the symbol of a variation. Variations differ in shape and colour.
 * @param {{ index: number }} props */
export const Mark = ({ index }) => (
  <svg class={"mark " + hue(index)} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><path d={shapes[index % shapes.length]} /></svg>
);
