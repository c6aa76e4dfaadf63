// @ts-check
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, query } from "./api.js";
import { count } from "./format.js";
import { lengthOf, quoted, replaced } from "./line.js";
import { remembered } from "./remembered.js";

/** @import { TargetedEvent } from "preact" */
/** @import { Placed } from "./line.js" */
/** @import { Route } from "./route.js" */
/** @import { Completion, ObservedValues, Subject } from "./types.d.ts" */

/** Offer is a text that may replace the characters from a place to another one.
 * @typedef {{ text: string, kind: string, from: number, to: number }} Offer */

/** What is written after an offer of a kind, which another word must follow.
 * @type {Record<string, string>} */
const after = { call: "(", keyword: " ", recent: "" };

/** valuesOf returns the observed values of an attribute that begin with a prefix.
 * @param {Subject} subject @param {Completion} completion @param {number} to @param {AbortSignal} signal
 * @returns {Promise<Offer[]>} */
async function valuesOf(subject, { field, source, prefix = "", from }, to, signal) {
  if (source !== "attribute") return [];
  const { body } = await ask(`${subject.path}/dimensions/${field}` + query({ limit: 100 }), { signal });
  const found = /** @type {ObservedValues} */ (body).values.filter(({ value }) => value && value.toLowerCase().startsWith(prefix.toLowerCase()));
  return found.map(({ value, visitors }) => ({ text: quoted(value), kind: `${count(visitors)} visitors`, from, to }));
}

/** offersAt returns what may follow at a place of a line. Where nothing is written, the last questions are first.
 * @param {Subject} subject @param {Route} route @param {string} line @param {number} at @param {AbortSignal} signal
 * @returns {Promise<Offer[]>} */
async function offersAt(subject, route, line, at, signal) {
  const { body } = await ask("/v1/complete" + query({ websiteId: route.get("websiteId"), text: line, at }), { signal });
  const completion = /** @type {Completion} */ (body), { from, candidates, field } = completion;
  const recent = line.trim() ? [] : remembered().map((text) => ({ text, kind: "recent", from: 0, to: lengthOf(line) }));
  const values = field ? await valuesOf(subject, completion, at, signal) : [];
  const written = [...line].slice(from, at).join("");
  return [...recent, ...values, ...candidates.filter(({ text }) => text !== written).map(({ text, kind }) => ({ text, kind, from, to: at }))];
}

/** useOffers requests what may follow at a place of a line, while the list is open.
 * @param {Subject} subject @param {Route} route @param {string} line @param {number | undefined} at undefined: closed */
function useOffers(subject, route, line, at) {
  const [offers, set] = useState(/** @type {Offer[]} */ ([]));
  useEffect(() => {
    if (at === undefined) return undefined;
    const aborted = new AbortController();
    offersAt(subject, route, line, at, aborted.signal).then(set, () => { if (!aborted.signal.aborted) set([]); });
    return () => aborted.abort();
  }, [line, at]);
  return at === undefined ? [] : offers;
}

/** Faults shows the line with a mark under the character of each error, and the errors.
 * @param {{ line: string, faults: Placed[] }} props */
function Faults({ line, faults }) {
  const all = [...line, " "], places = [...new Set(faults.map(({ at = 0 }) => Math.min(at, all.length - 1)))].sort((a, b) => a - b);
  return (
    <div class="faults" id="ask-faults" role="alert">
      <p class="marked"><span class="hidden">The question has an error: </span>{places.map((at, i) => <span key={at}>{all.slice(i ? places[i - 1] + 1 : 0, at).join("")}<mark data-at={at + 1}>{all[at]}</mark></span>)}{all.slice((places.at(-1) ?? -1) + 1).join("")}</p>
      <ul>{faults.map(({ at = 0, text }) => <li key={at + text}>Character {at + 1}: {text}</li>)}</ul>
    </div>
  );
}

/** Box is the field of a question: a combobox, which the keyboard alone can use.
 * @param {{ line: string, faults: Placed[], subject: Subject, route: Route, ask: (line: string) => void, again: () => unknown }} props */
export function Box({ line: asked, faults, subject, route, ask: submit, again }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null)), place = useRef(/** @type {number | undefined} */ (undefined));
  const [line, setLine] = useState(asked), [at, setAt] = useState(/** @type {number | undefined} */ (undefined)), [active, setActive] = useState(-1);
  const offers = useOffers(subject, route, line, at), open = offers.length > 0, chosen = offers[active];
  useEffect(() => { setLine(asked); }, [asked]);
  useEffect(() => { document.getElementById("offer-" + active)?.scrollIntoView({ block: "nearest" }); }, [active]);
  useEffect(() => { // after an offer replaced a word
    if (place.current === undefined) return;
    input.current?.setSelectionRange(place.current, place.current);
    place.current = undefined;
  });
  const close = () => { setAt(undefined); setActive(-1); };
  /** @param {string} text @param {number} caret in UTF-16 units */
  const look = (text, caret) => { setLine(text); setAt(lengthOf(text.slice(0, caret))); setActive(-1); };
  /** @param {Offer} offer */
  const take = ({ text, kind, from, to }) => {
    const next = replaced(line, from, to, text + (after[kind] ?? ""));
    place.current = [...next.line].slice(0, next.at).join("").length;
    look(next.line, place.current);
    input.current?.focus();
  };
  /** @param {number} step */
  const move = (step) => setActive(offers.length === 0 ? -1 : (Math.max(active, step < 0 ? 0 : -1) + step + offers.length) % offers.length);
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const down = event.key === "ArrowDown", up = event.key === "ArrowUp";
    if ((down || up) && at === undefined) look(line, input.current?.selectionStart ?? line.length);
    else if (down || up) move(down ? 1 : -1);
    else if (event.key === "Escape" && at !== undefined) close();
    else return;
    event.preventDefault();
  };
  /** send takes the chosen offer, or asks. @param {Event} event */
  const send = (event) => {
    event.preventDefault();
    const text = line.trim();
    if (chosen) return take(chosen);
    close();
    if (text && text === asked) again();
    else if (text || asked) submit(text);
  };
  return (
    <form class="asking" onSubmit={send}>
      <h2 id="ask"><label for="ask-line">Ask</label></h2>
      <div class="combobox">
        <input id="ask-line" name="ask" ref={input} role="combobox" value={line} autocomplete="off" autocapitalize="off" spellcheck={false} maxLength={4000} placeholder="metric [for visitors] [by attribute, attribute] [split text]"
          aria-autocomplete="list" aria-expanded={open} aria-controls="offers" aria-activedescendant={chosen ? "offer-" + active : undefined} aria-describedby={faults.length > 0 ? "ask-faults" : "ask-form"} aria-invalid={faults.length > 0}
          onInput={(/** @type {TargetedEvent<HTMLInputElement>} */ e) => look(e.currentTarget.value, e.currentTarget.selectionStart ?? 0)} onKeyDown={press} onBlur={close} />
        <ul id="offers" role="listbox" aria-label="What may follow" hidden={!open}>
          {offers.map((offer, i) => (
            <li key={offer.kind + offer.text} id={"offer-" + i} role="option" aria-selected={i === active} onPointerDown={(e) => e.preventDefault()} onClick={() => take(offer)}>{offer.text}<small>{offer.kind}</small></li>
          ))}
        </ul>
      </div>
      <button type="submit" class="strong">Ask</button>
      {faults.length > 0 && line === asked ? <Faults line={asked} faults={faults} /> : <p class="hidden" id="ask-form">Write: metric [for visitors] [by attribute, attribute] [split text]. The down arrow lists what may follow.</p>}
    </form>
  );
}
