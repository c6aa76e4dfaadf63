// @ts-check
import "./shared.js";
import { useEffect, useState } from "preact/hooks";
import { ask, query, session } from "./api.js";
import { minute, text } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Empty, Fault, Loading } from "./parts.jsx";
import { follow, to } from "./route.js";
import { spanOf } from "./span.js";

/** @import { TargetedEvent } from "preact" */
/** @import { Problem } from "./api.js" */
/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, LogEntry, Pairs } from "./types.d.ts" */

/** The kinds of entries in words.
 * @type {Record<LogEntry["entry"], string>} */
const kinds = {
  decision: "Decision", check: "Check", followUp: "Later orders", look: "Look", outcome: "Outcome", started: "Started", stopped: "Stopped", shares: "Shares",
  plan: "Plan", archived: "Archived", readout: "Readout", note: "Note", annotation: "Annotation",
};
const page = 50; // entries

/** Entry is an entry of the log. named: the entries are about several subjects.
 * @param {{ entry: LogEntry, named: boolean, go: Go, again: () => unknown }} props */
function Entry({ entry, named, go, again }) {
  const [error, setError] = useState(/** @type {Problem | undefined} */ (undefined));
  const { campaignId, widgetId, experimentId, websiteId } = entry;
  const whole = !campaignId && !widgetId, isNote = entry.entry === "note" || entry.entry === "annotation";
  const address = to([...(campaignId ? [["campaign", campaignId]] : [["widget", widgetId], ["experiment", experimentId]]), ["websiteId", websiteId]].filter(([, v]) => v).map(([n, v]) => /** @type {[string, number]} */ ([n, v])));
  const withdraw = async () => {
    try {
      await ask("/v1/notes/" + entry.id, { method: "DELETE" });
      again();
    } catch (refused) { setError(/** @type {Problem} */ (refused)); }
  };
  return (
    <li class={entry.withdrawnAt ? "withdrawn" : undefined} data-id={entry.id}>
      <p class="when"><span class="at">{minute(entry.at)}</span> <b>{kinds[entry.entry] ?? entry.entry}</b></p>
      <div>
        {named && <p class="of">{whole ? `All of ${entry.name}` : <a {...follow(go, address)}>{entry.name}</a>}</p>}
        {!named && whole && <p class="of">All of {entry.name}</p>}
        {entry.startsAt && <p class="at">{spanOf(entry)}</p>}
        <p class="said">{text(entry.text)}</p>
        <p class="quiet">{entry.by || "the server"}{entry.link?.startsWith("https://") && <> · <a href={entry.link} rel="noopener noreferrer" target="_blank">{new URL(entry.link).host}</a></>}
          {entry.readoutId && !entry.withdrawnAt && <> · <a href={"/readouts/" + entry.readoutId}>Open the readout</a></>}
          {entry.withdrawnAt && <> · withdrawn on <span class="at">{minute(entry.withdrawnAt)}</span> by {entry.withdrawnBy}</>}
          {isNote && !entry.withdrawnAt && session.mayWrite && <> · <button type="button" class="link" onClick={withdraw}>Withdraw</button></>}</p>
        {error && <Fault error={error} />}
      </div>
    </li>
  );
}

/** Writing is the form of a new note. With a day, it is an annotation.
 * @param {{ about: Record<string, number>, done: () => unknown }} props */
function Writing({ about, done }) {
  const [error, setError] = useState(/** @type {Problem | undefined} */ (undefined)), [said, say] = useState("");
  /** @param {TargetedEvent<HTMLFormElement, SubmitEvent>} event */
  const write = async (event) => {
    event.preventDefault();
    const form = event.currentTarget, given = new FormData(form), date = String(given.get("date"));
    const start = date && Date.parse(date + "T00:00:00Z");
    const day = start && { startsAt: new Date(start).toISOString(), endsAt: new Date(start + 864e5).toISOString() };
    try {
      await ask("/v1/notes", { method: "POST", body: { ...about, kind: day ? "annotation" : "note", ...day, text: String(given.get("text")).trim() } });
      setError(undefined);
      form.reset();
      say(day ? "Added to the log and to the charts." : "Added to the log.");
      done();
    } catch (refused) { setError(/** @type {Problem} */ (refused)); say(""); }
  };
  return (
    <form class="writing" onSubmit={write}>
      <label>Note <textarea name="text" required maxLength={2048} rows={2} placeholder="The price of the bundle was raised" /></label>
      <label>Day (UTC), for the charts <input type="date" name="date" min="1970-01-01" max="2199-12-31" /></label>
      <button type="submit">Add</button> <span role="status">{said}</span>
      {error && <Fault error={error} />}
    </form>
  );
}

/** Log is the list of entries that a request selects, with the form of a new note.
 * @param {{ asked: Pairs, about: Record<string, number>, named: boolean, go: Go }} props */
export function Log({ asked, about, named, go }) {
  const [entry, choose] = useState(""), [earlier, setEarlier] = useState(/** @type {LogEntry[]} */ ([])), [failed, setFailed] = useState(/** @type {Problem | undefined} */ (undefined));
  const path = "/v1/log" + query([...asked, ["entry", entry || undefined], ["limit", page]]);
  /** @type {Answer<LogEntry[]>} */
  const { body, total = 0, error, loading, again } = useAnswer(path, { every: 60000 });
  useEffect(() => { setEarlier([]); }, [path]);
  const known = new Set(body?.map((e) => e.id)), entries = [...(body ?? []), ...earlier.filter((e) => !known.has(e.id))], last = entries.at(-1);
  const more = async () => {
    try {
      const found = await ask(path + "&" + query([["after", `${last?.at}/${last?.id}`]]).slice(1));
      setEarlier([...earlier, ...found.body]);
      setFailed(undefined);
    } catch (refused) { setFailed(/** @type {Problem} */ (refused)); }
  };
  const renew = () => { setEarlier([]); again(); };
  return (
    <>
      {session.mayWrite && <Writing about={about} done={renew} />}
      <p class="choices"><label>Show <select value={entry} onChange={(e) => choose(e.currentTarget.value)}>
        <option value="">all entries</option>
        {Object.entries(kinds).map(([kind, words]) => <option key={kind} value={kind}>{words}</option>)}
      </select></label></p>
      {error && <Fault error={error} again={again} />}
      {!body && loading && <Loading what="the log" />}
      {body && entries.length === 0 && <Empty>{entry ? "There is no such entry." : "Nothing has happened yet."}</Empty>}
      {entries.length > 0 && <ol class="log" aria-busy={loading}>{entries.map((e) => <Entry key={e.id} entry={e} {...{ named, go }} again={renew} />)}</ol>}
      {failed && <Fault error={failed} />}
      {entries.length < total && <p class="buttons"><button type="button" onClick={more}>Show earlier entries</button></p>}
    </>
  );
}

/** LogPage is the log of a website.
 * @param {{ route: Route, go: Go }} props */
export function LogPage({ route, go }) {
  const website = route.get("websiteId") ?? "";
  useEffect(() => { document.title = "Log · Lifthouse"; }, []);
  return (
    <>
      <p><a {...follow(go, to([["websiteId", website]]))}>← Overview</a></p>
      <div class="title"><h1>Log</h1><span class="quiet">who decided, started, stopped or noted what</span></div>
      <section aria-label="Log"><Log asked={[["websiteId", website]]} about={{ websiteId: Number(website) }} named go={go} /></section>
    </>
  );
}

/** SubjectLog is the log of a campaign, a widget or an experiment.
 * @param {{ route: Route, go: Go }} props */
export function SubjectLog({ route, go }) {
  const ids = ["campaign", "widget", "experiment"].flatMap((name) => (route.get(name) ? [/** @type {[string, number]} */ ([name + "Id", Number(route.get(name))])] : []));
  return <Log asked={ids} about={Object.fromEntries(ids)} named={false} go={go} />;
}
