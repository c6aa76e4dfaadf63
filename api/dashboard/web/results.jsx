// @ts-check
import { useEffect, useState } from "preact/hooks";
import { ask, query } from "./api.js";
import { Checks, Progress } from "./checks.jsx";
import { Controls } from "./controls.jsx";
import { Forest } from "./forest.jsx";
import { count, day, minute, text } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Copied, Empty, Fault, Loading, Num, State } from "./parts.jsx";
import { Decided } from "./planned.jsx";
import { Posterior } from "./posterior.jsx";
import { follow, to } from "./route.js";
import { Scorecard } from "./scorecard.jsx";
import { Segments } from "./segments.jsx";
import { OverTime } from "./series.jsx";
import { Switch } from "./switch.jsx";
import { Variations } from "./table.jsx";
import { conclusions, kind } from "./words.js";

/** @import { ComponentChildren } from "preact" */
/** @import { Problem } from "./api.js" */
/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, Item, Results as Report, Subject } from "./types.d.ts" */

/** @param {{ results: Report }} props */
function Conclusion({ results }) {
  const c = results.conclusion;
  if (!c) return <p class="conclusion plain">These are the widget's own variations. Only its experiments are compared with control.</p>;
  return (
    <div class={"conclusion " + c.status} role="status" aria-label="Conclusion">
      <b class="tag">{c.reasons.includes("NOT_DECLARED") ? "No conclusion" : conclusions[c.status]}</b>
      <p id="conclusion">{text(c.text)}</p>
      <Decided results={results} />
    </div>
  );
}

/** Request shows the API request and the SQL, and downloads the results as CSV.
 * @param {{ path: string }} props */
function Request({ path }) {
  const [shown, show] = useState(/** @type {{ loading?: boolean, body?: string, saved?: string, error?: Problem } | undefined} */ (undefined));
  const text = `curl -sg -H "Authorization: Bearer $LIFTHOUSE_TOKEN" '${location.origin}${path.replaceAll("'", "%27")}'`;
  useEffect(() => show(undefined), [path]);
  const sql = () => { show({ loading: true }); return ask(path, { accept: "application/sql" }).then(({ body }) => show({ body }), (error) => show({ error })); };
  const csv = () => ask(path, { accept: "text/csv" }).then(({ body }) => show({ saved: save(body, path) }), (error) => show({ error }));
  return (
    <section aria-labelledby="request">
      <h2 id="request">Export</h2>
      <p class="buttons"><button type="button" id="csv" onClick={csv}>Download CSV</button> <span role="status">{shown?.saved && "Saved as " + shown.saved}</span></p>
      <details><summary>Show API request</summary><pre tabIndex={0} id="curl">{text}</pre><Copied text={text} label="Copy request" /></details>
      <details onToggle={(e) => e.currentTarget.open && !shown?.body && sql()}>
        <summary id="show-sql">Show SQL</summary>
        {shown?.body ? <><pre tabIndex={0} id="sql">{shown.body}</pre><Copied text={shown.body} label="Copy SQL" /></> : shown?.loading && <Loading what="SQL" />}
      </details>
      {shown?.error && <Fault error={shown.error} />}
    </section>
  );
}

/** save downloads a text and returns the file name.
 * @param {string} text @param {string} path */
function save(text, path) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = path.replace(/\?.*/, "").replace("/v1/", "").replaceAll("/", "-") + ".csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  return link.download;
}

/** @param {{ widget: Item, go: Go }} props */
function Experiments({ widget, go }) {
  if (!widget.experiments?.length) return null;
  return (
    <section aria-labelledby="experiments">
      <h2 id="experiments">Experiments</h2>
      <ul class="plain-list">{widget.experiments.map((e) => (
        <li key={e.id}><a {...follow(go, to([["widget", widget.id], ["experiment", e.id]]))}>{e.name || "Experiment " + e.id}</a> <State {...e} /></li>
      ))}</ul>
    </section>
  );
}

/** @param {string} words */
const capital = (words) => words[0].toUpperCase() + words.slice(1);

/** @param {{ at: string }} props */
const Stale = ({ at }) => (
  <div class="notice warn" role="status">
    <p><b>Not up to date</b>: the store is unavailable. These are the last available results, from {minute(at)}. This page retries automatically.</p>
  </div>
);

/** @param {{ subject: Subject, detail: Answer<Item>, route: Route, go: Go, fresh: ComponentChildren, said?: Problem }} props */
function Header({ subject, detail, route, go, fresh, said }) {
  const { body, error } = detail;
  const experiment = body?.experiments?.find((e) => String(e.id) === subject.experiment);
  const name = experiment ? experiment.name || "Experiment " + experiment.id : body?.name;
  useEffect(() => { document.title = (name ? name + " · " : "") + "Lifthouse"; }, [name]);
  const back = subject.kind === "experiment" ? to([["widget", route.get("widget")]]) : to([["websiteId", route.get("websiteId") || undefined], ...(subject.kind === "widget" ? [/** @type {[string, string]} */ (["show", "widgets"])] : [])]);
  if (!body) return <header class="subject"><p><a {...follow(go, back)}>← Back</a></p>{error ? !said && <Fault error={error} again={detail.again} /> : <Loading what="details" />}</header>;
  const shown = experiment || body;
  return (
    <header class="subject">
      <p><a {...follow(go, back)}>← {subject.kind === "experiment" ? body.name : subject.kind === "widget" ? "All widgets" : "All campaigns"}</a></p>
      <div class="title"><h1>{name}</h1><State {...shown} />{!experiment && <Switch subject={subject} body={body} done={detail.again} />}</div>
      <p class="quiet">{experiment ? "Experiment" : capital(kind(body.type))} {shown.id}{experiment && <> of the widget {body.name}</>}{shown.startDate && <> · since {day(shown.startDate)}</>}{shown.endDate && <> · until {day(shown.endDate)}</>}
        {!experiment && <> · <Num value={body.views}>{count(body.views)}</Num> views and <Num value={body.goalsReached}>{count(body.goalsReached)}</Num> goals in total</>}</p>
      {fresh}
    </header>
  );
}

/** Results shows a campaign, widget or experiment with its report.
 * @param {{ subject: Subject, route: Route, go: Go }} props */
export function Results({ subject, route, go }) {
  const place = query([["websiteId", route.get("websiteId")]]);
  /** @type {Answer<Item>} */
  const detail = useAnswer(subject.home + place);
  const path = subject.path + "/results" + query(route.asked);
  /** @type {Answer<Report>} */
  const { body: results, error, loading, stale, again } = useAnswer(path);
  const empty = results?.totals.visitors === 0;
  const fresh = results && <p class="quiet">Refreshes every 5 s · computed <span class="at">{minute(results.generatedAt)}</span></p>;
  return (
    <>
      <Header {...{ subject, detail, route, go, fresh }} said={error} />
      {error && <Fault error={error} again={again} reset={follow(go, route.plain.address)} />}
      {results && (stale || results.stale) && <Stale at={results.generatedAt} />}
      {!results && loading && <div class="conclusion"><Loading what="results" /></div>}
      {results && <Conclusion results={results} />}
      <Controls {...{ subject, route, go }} />
      {results && (
        <div class="results" aria-busy={loading}>
          {empty && <Empty>No visitors yet{route.filters.length > 0 && ", or no visitors match the filters"}.<br />{route.filters.length > 0 ? <a {...follow(go, route.filters.reduce((r, [n]) => r.without(n), route).address)}>Remove filters</a> : <>Events appear here within seconds. To list the latest events, run <code>lifthouse events</code>.</>}</Empty>}
          {subject.kind === "widget" && detail.body && <Experiments widget={detail.body} go={go} />}
          <Variations results={results} kind={subject.kind} />
          <Forest results={results} />
          <Posterior results={results} />
          {!empty && subject.kind !== "widget" && <Scorecard {...{ subject, route }} />}
          {!empty && <OverTime {...{ subject, route, go }} />}
          {(!empty || results.dimension) && <Segments {...{ results, subject, route, go }} />}
          <div class="pair"><Checks results={results} />{!empty && <Progress results={results} />}</div>
          <Request path={path} />
        </div>
      )}
    </>
  );
}
