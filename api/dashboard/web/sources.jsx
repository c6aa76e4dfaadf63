// @ts-check
import "./shared.js";
import { useEffect, useState } from "preact/hooks";
import { ask, session } from "./api.js";
import { count, minute } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Copied, Empty, Fault, Loading, Num } from "./parts.jsx";
import { follow, to } from "./route.js";
import { Cell } from "./table.jsx";

/** @import { Problem } from "./api.js" */
/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, Sender, Source, Sources, Website } from "./types.d.ts" */

/** SenderText says what to paste at a sender. Who may administer the account can make the address here;
 * otherwise a command does it. The key is shown once.
 * @param {{ sender: Sender, website?: Website, done: () => unknown }} props */
function SenderText({ sender: { name, title, text }, website, done }) {
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {Problem | undefined} */ (undefined));
  const make = () => {
    setBusy(true);
    ask("/tokens", { method: "POST", body: { name, scopes: ["ingest"], websiteId: website?.id, sender: { mapping: name } } })
      .then(({ body }) => { setKey(body.secret); setError(undefined); done(); }, setError)
      .finally(() => setBusy(false));
  };
  const shown = text.replaceAll("{KEY}", key || "KEY");
  return (
    <details name="sender" data-sender={name}>
      <summary>{title}</summary>
      {website && session.mayShare ? !key && <p class="buttons"><button type="button" class="strong" disabled={busy} onClick={make}>Make an address for {title}</button></p>
        : <p>The address is made by <code>lifthouse source add {name} --domain {website?.domain ?? "shop.example.com"}</code>, which prints:</p>}
      {error && <Fault error={error} />}
      {key && <p role="status"><b>Copy this now: the key cannot be shown again.</b></p>}
      <pre tabIndex={0} aria-label={`What to paste at ${title}`}>{shown}</pre>
      {key && <Copied text={shown} label="Copy" />}
    </details>
  );
}

/** Senders says what to paste at each sender.
 * @param {{ senders: Sender[], website?: Website, done: () => unknown }} props */
const Senders = ({ senders, website, done }) => <div class="senders">{senders.map((sender) => <SenderText key={sender.name} {...{ sender, website, done }} />)}</div>;

/** @param {Source} source */
const ignoredOf = ({ ignored }) => Object.entries(ignored).sort(([, a], [, b]) => b - a);

const heads = ["Source", "Last request", "Accepted", "Purchases", "No visitor", "Rejected", "Ignored"];

/** Table is what arrived from each source.
 * @param {{ sources: Source[] }} props */
const Table = ({ sources }) => (
  <table class="cards sources" role="table" aria-label="Sources">
    <thead role="rowgroup"><tr role="row">{heads.map((text, i) => <th key={text} role="columnheader" scope="col" class={i > 1 && i < 6 ? "n" : undefined}>{text}</th>)}</tr></thead>
    <tbody role="rowgroup">{sources.map((s) => (
      <tr key={s.id} role="row" data-source={s.id}>
        <th role="rowheader" scope="row">{s.name}<small>{s.mapping === s.name ? "" : `mapping ${s.mapping}, `}token {s.id}</small></th>
        <Cell label="Last request" class="two">{s.lastRequest ? <span class="at">{minute(s.lastRequest)}</span> : <span class="quiet">never</span>}</Cell>
        <Cell label="Accepted" class="n"><Num value={s.accepted}>{count(s.accepted)}</Num></Cell>
        <Cell label="Purchases" class="n"><Num value={s.purchases}>{count(s.purchases)}</Num></Cell>
        <Cell label="No visitor" class="n"><Num value={s.noVisitor}>{count(s.noVisitor)}</Num></Cell>
        <Cell label="Rejected" class="n"><Num value={s.rejected}>{count(s.rejected)}</Num></Cell>
        <Cell label="Ignored" class={Object.keys(s.ignored).length > 0 ? "wide" : "wide none"}>{ignoredOf(s).map(([name, n]) => <span key={name} class="flag plain">{name || "without a name"} {count(n)}</span>)}</Cell>
      </tr>
    ))}</tbody>
  </table>
);

/** useSources requests the sources of a website.
 * @param {Website | undefined} website @param {number} every milliseconds */
function useSources(website, every) {
  /** @type {Answer<Sources>} */
  const answer = useAnswer("/v1/sources", { every });
  /** @param {{ websiteId: number }} of */
  const here = (of) => of.websiteId === website?.id;
  return { ...answer, sources: answer.body?.sources.filter(here) ?? [], warnings: answer.body?.warnings.filter(here) ?? [], orders: answer.body?.orders.filter(here) ?? [] };
}

/** Waiting replaces the results of a website without any: it says how to send events, and counts those that arrive.
 * @param {{ website?: Website }} props */
export function Waiting({ website }) {
  const { body, sources, error, again } = useSources(website, 1000);
  const arrived = sources.reduce((n, s) => n + s.accepted, 0);
  return (
    <section aria-labelledby="waiting">
      <h2 id="waiting">{arrived > 0 ? "Events arrive" : "Waiting for the first event"}</h2>
      <p role="status" class="answer-text"><Num value={arrived}>{count(arrived)}</Num> {arrived === 1 ? "event has" : "events have"} arrived.</p>
      {sources.length > 0 && <Table sources={sources} />}
      {arrived > 0 ? <p>Results appear here when an experiment is declared.</p> : <p>Keep the A/B testing tool that you have. Choose what sends its events:</p>}
      {error && <Fault error={error} again={again} />}
      {body && <Senders senders={body.senders} website={website} done={again} />}
      <p class="quiet">Files of events: <code>lifthouse import</code>. Guides: <a href="/guides/getting-started.md">Getting started</a> · <a href="/guides/data-in.md">Data in</a> · <a href="/guides/glossary.md">Glossary</a></p>
    </section>
  );
}

/** SourcesPage shows what arrived from the sources of a website, and how to add one.
 * @param {{ route: Route, go: Go }} props */
export function SourcesPage({ route, go }) {
  /** @type {Answer<Website[]>} */
  const websites = useAnswer("/v1/websites", { every: 60000 });
  const website = websites.body?.find((w) => String(w.id) === route.get("websiteId"));
  const { body, sources, warnings, orders, error, again } = useSources(website, 2000);
  useEffect(() => { document.title = "Sources · Lifthouse"; }, []);
  return (
    <>
      <p><a {...follow(go, to([["websiteId", route.get("websiteId")]]))}>← Overview</a></p>
      <div class="title"><h1>Sources</h1>{website && <span class="quiet">{website.domain}</span>}</div>
      {error && <Fault error={error} again={again} />}
      {!body && <Loading what="sources" />}
      {warnings.map(({ message }) => <p key={message} class="notice warn">{message}</p>)}
      {body && <section aria-labelledby="arrived">
        <h2 id="arrived">What has arrived since the server started</h2>
        {sources.length > 0 ? <Table sources={sources} /> : <Empty>This website has no source yet.</Empty>}
      </section>}
      {orders.length > 0 && <section aria-labelledby="orders">
        <h2 id="orders">How long orders change</h2>
        <ul>{orders.map(({ goalId, text }) => <li key={goalId}>{text}</li>)}</ul>
      </section>}
      {body && <section aria-labelledby="add">
        <h2 id="add">Add a source</h2>
        <Senders senders={body.senders} website={website} done={again} />
        <p class="quiet">A client with the key can add events to this website and nothing else. See the guide <a href="/guides/data-in.md">Data in</a>.</p>
      </section>}
    </>
  );
}
