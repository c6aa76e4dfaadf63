// @ts-check
import { useRef, useState } from "preact/hooks";
import { ask, session } from "./api.js";
import { count, day, percent, pInWords } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Fault, Num } from "./parts.jsx";

/** @import { TargetedSubmitEvent } from "preact" */
/** @import { Problem } from "./api.js" */
/** @import { Answer } from "./hooks.js" */
/** @import { Discovered, Goal } from "./types.d.ts" */

/** @param {{ key?: string, id?: number, campaignId?: number }} of */
const nameOf = ({ key, id, campaignId }) => key ?? (id === 0 ? "control" : String(id ?? campaignId));

/** isUneven reports whether an equal split is refuted (the level of the check of the sample ratio).
 * @param {Discovered} found */
const isUneven = ({ equalSplitPValue: p }) => p !== null && p < 0.001;

/** quoted returns an argument of a shell.
 * @param {string} text */
const quoted = (text) => (/^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Form declares a campaign. It asks for what the events do not say, and shows no outcome.
 * @param {{ found: Discovered, done: () => unknown, close: () => void }} props */
function Form({ found, done, close }) {
  const [error, setError] = useState(/** @type {Problem | undefined} */ (undefined));
  const [busy, setBusy] = useState(false);
  /** @type {Answer<Goal[]>} */
  const goals = useAnswer(`/v1/goals?websiteId=${found.websiteId}&limit=500`, { every: 60000 });
  const { variations } = found, known = variations.some((v) => v.id === 0 || v.key === "control"), uneven = isUneven(found), list = "goals-" + found.campaignId;
  /** @param {TargetedSubmitEvent<HTMLFormElement>} event */
  const declare = (event) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget), control = known ? "control" : String(given.get("control"));
    const ordered = [...variations].sort((a, b) => Number(nameOf(b) === control) - Number(nameOf(a) === control));
    setBusy(true);
    ask("/declarations", { method: "POST", body: {
      websiteId: found.websiteId, ...(found.key ? { key: found.key } : { campaignId: found.campaignId }), goal: String(given.get("goal")).trim(), plannedDays: Number(given.get("days")),
      ...(!known && { control }), ...(uneven && { shares: ordered.map((v) => Number(given.get("share-" + v.id))) }),
    } }).then(done, setError).finally(() => setBusy(false));
  };
  return (
    <form class="declare" onSubmit={declare}>
      <label>Goal that decides <input name="goal" required maxLength={200} list={list} placeholder="purchase" autofocus /></label>
      <datalist id={list}>{["purchase", ...(goals.body ?? []).map((g) => g.key ?? String(g.id)).filter((g) => g !== "purchase")].map((g) => <option key={g} value={g} />)}</datalist>
      <label>Planned days <input name="days" type="number" required min={1} max={730} value={28} /></label>
      {!known && <fieldset><legend>Control: what visitors saw before</legend>{variations.map((v) => <label key={v.id} class="inline"><input type="radio" name="control" required value={nameOf(v)} /> {nameOf(v)}</label>)}</fieldset>}
      {uneven && <fieldset><legend>Planned shares</legend>
        <p>The visitors are not divided equally (<span class="at">p {pInWords(found.equalSplitPValue)}</span>). Enter the shares that were planned, not those that are observed: the check of the sample ratio compares the visitors with them.</p>
        {variations.map((v) => <label key={v.id}>{nameOf(v)}, % <input name={"share-" + v.id} type="number" required min={0} max={100} /></label>)}</fieldset>}
      {error && <Fault error={error} />}
      <p class="buttons"><button type="submit" class="strong" disabled={busy}>Declare {nameOf(found)}</button> <button type="button" onClick={close}>Cancel</button></p>
    </form>
  );
}

/** Campaign shows the exposures of a campaign that is not declared, and declares or ignores it.
 * @param {{ found: Discovered, done: () => unknown }} props */
function Campaign({ found, done }) {
  const [open, setOpen] = useState(false);
  const [error, setError] = useState(/** @type {Problem | undefined} */ (undefined));
  const name = nameOf(found);
  const ignore = () => ask("/declarations", { method: "POST", body: { websiteId: found.websiteId, ...(found.key ? { key: found.key } : { campaignId: found.campaignId }), ignore: true } }).then(done, setError);
  return (
    <li data-undeclared={name}>
      <h2>{name}</h2>
      <p><Num value={found.visitors}>{count(found.visitors)}</Num> visitors since {day(found.firstView)}{found.source && <>, sent by {found.source}</>}: {found.variations.map((v, i) => <span key={v.id}>{i > 0 && ", "}{nameOf(v)} <Num value={v.share}>{percent(v.share, 1)}</Num></span>)}</p>
      {error && <Fault error={error} />}
      {!session.mayShare ? <p>Declare it with <code>lifthouse discover {quoted(name)} --goal purchase</code></p>
        : open ? <Form {...{ found, done }} close={() => setOpen(false)} />
          : <p class="buttons"><button type="button" onClick={() => setOpen(true)}>Declare<span class="hidden"> {name}</span> …</button> <button type="button" class="link" onClick={ignore}>Ignore<span class="hidden"> {name}</span></button></p>}
    </li>
  );
}

const most = 20; // campaigns that are shown
const counted = 1000; // that are counted

/** Undeclared says how many campaigns of a website arrived that nobody declared, and opens a form for each.
 * @param {{ website?: number, every: number, done: () => unknown }} props every: milliseconds */
export function Undeclared({ website, every, done }) {
  const pause = useRef(every);
  pause.current = every;
  /** @type {Answer<Discovered[]>} */
  const { body, again } = useAnswer(`/v1/undeclared?limit=${counted}${website ? `&websiteId=${website}` : ""}`, { every: () => pause.current });
  const found = body?.filter((d) => d.websiteId === website) ?? [];
  if (found.length === 0) return null;
  const changed = () => { again(); done(); };
  return (
    <details class="notice undeclared">
      <summary><b>{count(found.length)} {found.length === counted && "or more "}{found.length === 1 ? "experiment" : "experiments"} arrived that {found.length === 1 ? "is" : "are"} not declared</b></summary>
      <p class="quiet">Only exposures are shown: a plan that is made after the first views must not be chosen by their outcomes.</p>
      <ul class="plain-list">{found.slice(0, most).map((d) => <Campaign key={d.campaignId} found={d} done={changed} />)}</ul>
      {found.length > most && <p class="quiet">These are the {most} with most visitors. <code>lifthouse discover</code> lists all.</p>}
    </details>
  );
}
