// @ts-check
import "./shared.js";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, query } from "./api.js";
import { Dialog, Fault } from "./parts.jsx";
import { found as foundOf, targetsOf } from "./targets.js";

/** @import { TargetedEvent } from "preact" */
/** @import { Problem } from "./api.js" */
/** @import { Target } from "./targets.js" */
/** @import { Go, ResultItem, Website } from "./types.d.ts" */

const page = 1000; // items of a request at most

/** allResults requests all campaigns and experiments.
 * @param {AbortSignal} signal
 * @returns {Promise<ResultItem[]>} */
async function allResults(signal) {
  /** @type {ResultItem[]} */
  const all = [];
  for (let after; ;) {
    const { body } = await ask("/v1/results" + query({ limit: page, after }), { signal });
    all.push(...body);
    if (body.length < page) return all;
    const last = body[body.length - 1];
    after = last.campaignId ? "campaign/" + last.campaignId : `experiment/${last.widgetId}/${last.experimentId}`;
  }
}

/** Search is a box that finds websites, campaigns, owners, tags and keys of the account: a combobox in a dialog.
 * @param {{ websites: Website[], go: Go, onClose: () => void }} props */
export function Search({ websites, go, onClose }) {
  const [targets, setTargets] = useState(/** @type {Target[] | undefined} */ (undefined)), [error, setError] = useState(/** @type {Problem | undefined} */ (undefined));
  const [text, setText] = useState(""), [active, setActive] = useState(0);
  const list = useRef(/** @type {HTMLUListElement | null} */ (null));
  useEffect(() => {
    const aborted = new AbortController();
    allResults(aborted.signal).then((items) => setTargets(targetsOf(websites, items)), (refused) => { if (!aborted.signal.aborted) setError(refused); });
    return () => aborted.abort();
  }, [websites]);
  const found = foundOf(targets ?? targetsOf(websites, []), text), chosen = found[active];
  useEffect(() => { list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }); }, [active, text]);
  /** @param {Target | undefined} target */
  const open = (target) => {
    if (!target) return;
    onClose();
    go(target.address);
    scrollTo(0, 0);
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    if (found.length > 0) setActive((active + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length);
  };
  return (
    <Dialog title="Search" onClose={onClose}>
      <form class="search" onSubmit={(event) => { event.preventDefault(); open(chosen); }}>
        <input role="combobox" autofocus autocomplete="off" spellcheck={false} aria-label="Search websites, campaigns, owners, tags and keys" placeholder="website, campaign, owner, tag or key" value={text}
          aria-autocomplete="list" aria-expanded={found.length > 0} aria-controls="found" aria-activedescendant={chosen ? "found-" + active : undefined}
          onInput={(/** @type {TargetedEvent<HTMLInputElement>} */ e) => { setText(e.currentTarget.value); setActive(0); }} onKeyDown={press} />
        <ul id="found" role="listbox" aria-label="What was found" ref={list} hidden={found.length === 0}>
          {found.map((target, i) => <li key={target.address} id={"found-" + i} role="option" aria-selected={i === active} onPointerDown={(e) => e.preventDefault()} onClick={() => open(target)}>{target.name}<small>{target.about}</small></li>)}
        </ul>
        <p class="quiet" role="status">{!targets && !error ? "Loading campaigns …" : text && found.length === 0 ? "Nothing was found." : ""}</p>
        {error && <Fault error={error} />}
      </form>
    </Dialog>
  );
}
