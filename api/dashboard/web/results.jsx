// @ts-check
import { query, session } from "./api.js";
import { Answer as Answered, Exploration } from "./answer.jsx";
import { Changed } from "./changed.jsx";
import { Checks, Progress } from "./checks.jsx";
import { Compare } from "./compare.jsx";
import { Controls } from "./controls.jsx";
import { Export } from "./export.jsx";
import { minute } from "./format.js";
import { Header } from "./header.jsx";
import { Glossary } from "./help.jsx";
import { useAnswer, useOpened } from "./hooks.js";
import { later } from "./later.jsx";
import { useNames } from "./names.js";
import { Empty, Fault, Loading, Part, Pause, State } from "./parts.jsx";
import { Posterior } from "./posterior.jsx";
import { follow, to } from "./route.js";
import { Scorecard } from "./scorecard.jsx";
import { Segments } from "./segments.jsx";
import { OverTime } from "./series.jsx";
import { Variations } from "./table.jsx";
import { TrustStrip } from "./trust.jsx";
import { viewOf } from "./words.js";

/** @import { ComponentChildren } from "preact" */
/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, Item, Results as Report, Subject, Website } from "./types.d.ts" */

const Planned = later(() => import("./plan.jsx").then((m) => m.Planned));
const Ask = later(() => import("./ask.jsx").then((m) => m.Ask));
const Log = later(() => import("./log.jsx").then((m) => m.SubjectLog));
const FollowUp = later(() => import("./followup.jsx").then((m) => m.FollowUp));
const Products = later(() => import("./products.jsx").then((m) => m.Products));

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

/** @param {{ results: Report }} props */
const Stale = ({ results: { waiting, generatedAt, checks } }) => (
  <div class="notice warn" role="status">
    <p><b>Not up to date</b>: {waiting ? checks.warnings.find((w) => w.code === "EVENTS_WAITING")?.message : <>the store is unavailable. These are the last available results, from {minute(generatedAt)}</>}. This page retries automatically.</p>
  </div>
);

const slow = 30000; // milliseconds between two requests of the scorecard
const rare = 300000; // of all requests about a subject that has ended

/** whole returns the parameters of the report without its breakdown.
 * @param {Route} route */
const whole = (route) => route.asked.filter(([n]) => n !== "dimension");

/** useScorecard requests the scorecard and the decision.
 * @param {Subject} subject @param {Route} route @param {number} every
 * @returns {Answer<Report>} */
function useScorecard(subject, route, every) {
  const path = subject.kind !== "widget" && subject.path + "/results" + query([...whole(route), ["scorecard", "true"]]);
  return useAnswer(path, { every: () => every });
}

/** Valid shows numbers at once, unless visitors of a variation are lost or added: then they are closed, grey and without
 * verdicts, because no comparison is valid.
 * @param {{ results: Report, children: ComponentChildren }} props */
function Valid({ results, children }) {
  const [opened, onToggle] = useOpened();
  if (!results.checks.sampleRatio?.mismatch) return <>{children}</>;
  return <details class="not-valid" onToggle={onToggle}><summary>Show the numbers that are not valid</summary>{opened && children}</details>;
}

/** Sold is the part about products. It appears if goal events have lines, and requests the products once it is opened.
 * @param {{ subject: Subject, route: Route, results: Report }} props */
function Sold({ subject, route, results }) {
  const [opened, onToggle] = useOpened();
  /** @type {Answer<Report>} */
  const { body } = useAnswer(subject.path + "/results" + query([["metric", "converted(any)"], ["split", "items.product"], ["top", "1"]]), { every: () => rare });
  if (!body?.split?.items.some(({ value }) => value !== "(none)")) return null;
  return <Part id="products" title="Products" onToggle={onToggle}>{opened && <Products {...{ subject, route, results }} />}</Part>;
}

/** Logged is the part with the log of a campaign, widget or experiment.
 * @param {{ route: Route, go: Go }} props */
function Logged({ route, go }) {
  const [opened, onToggle] = useOpened();
  return <Part id="log" title="Log" onToggle={onToggle}>{opened && <Log {...{ route, go }} />}</Part>;
}

/** Results shows a campaign, widget or experiment with its report.
 * @param {{ subject: Subject, route: Route, go: Go }} props */
export function Results({ subject, route, go }) {
  const place = query([["websiteId", route.get("websiteId")]]);
  /** @type {Answer<Item>} */
  const detail = useAnswer(subject.home + place);
  const about = detail.body?.experiments?.find((e) => String(e.id) === subject.experiment) ?? detail.body;
  const ended = about !== undefined && !about.active && Boolean(about.startDate);
  const path = subject.path + "/results" + query(route.asked); // of the exports
  /** @type {Answer<Report>} */
  const { body: results, error, loading, stale, again } = useAnswer(subject.path + "/results" + query(whole(route)), { every: ended ? rare : 5000 });
  const scorecard = useScorecard(subject, route, ended ? rare : slow), scored = scorecard.body;
  // An exploration is shown beside the decision about all visitors.
  const exploring = subject.kind !== "widget" && scored && !scored.decision;
  /** @type {Answer<Report>} */
  const { body: decided } = useAnswer(exploring && subject.path + "/results" + query([...route.plain.asked, ["scorecard", "true"]]), { every: slow });
  /** @type {Answer<Website[]>} */
  const websites = useAnswer(!session.shared && "/v1/websites", { every: 60000 });
  const website = session.shared ?? websites.body?.find((w) => String(w.id) === route.get("websiteId")) ?? (websites.body?.length === 1 ? websites.body[0] : undefined);
  const { names, own } = useNames(route), every = ended ? rare : slow;
  // Parts appear together, so that none moves when another one arrives.
  const ready = results && (scored || scorecard.error || subject.kind === "widget");
  const empty = results?.totals.visitors === 0;
  const pictured = about?.variations;
  const fresh = results && <> · {!ended && <><Pause /> · </>}data through <span class="at">{minute(results.dataThrough)}</span></>;
  const view = results && viewOf({ ...results, dimension: route.get("dimension") ?? null });
  return (
    <>
      <Header {...{ subject, detail, route, go, fresh, scored }} said={error} />
      {results && <p class="printed">{view}</p>}
      {error && <Fault error={error} again={again} reset={follow(go, route.plain.address)} />}
      {results && (stale || results.stale) && <Stale results={results} />}
      {!ready && (loading || results) && !error && <div class="conclusion"><Loading what="results" /></div>}
      {ready && (exploring ? <Exploration results={results} decided={decided} all={follow(go, route.plain.address)} /> : <Answered results={results} scored={scored} />)}
      {ready && results.conclusion && !empty && <TrustStrip results={results} scored={scored} />}
      {(ready || error) && <Controls {...{ subject, route, go, scored, own }} timezone={website?.timezone} />}
      {ready && (
        <div class="results" aria-busy={loading}>
          {empty && <Empty>No visitors yet{route.filters.length > 0 && ", or no visitors match the filters"}.<br />{route.filters.length > 0 ? <a {...follow(go, route.filters.reduce((r, [n]) => r.without(n), route).address)}>Remove filters</a> : <>Events appear here within seconds. To list the latest events, run <code>lifthouse events</code>.</>}</Empty>}
          {subject.kind === "campaign" && about && !about.active && !about.startDate && website && "id" in website && <Planned campaign={/** @type {Item} */ (about)} website={website.id} go={go} />}
          {subject.kind === "widget" && detail.body && <Experiments widget={detail.body} go={go} />}
          {subject.kind === "widget" && <Variations {...{ results, pictured, subject, route }} />}
          <Valid results={results}>
            {!empty && subject.kind !== "widget" && <Scorecard answer={scorecard} />}
            {results.followUp && <FollowUp readings={results.followUp} />}
            {!empty && <OverTime {...{ subject, route, go }} />}
            {subject.kind !== "widget" && !empty && <Compare {...{ subject, route }} />}
            {subject.kind !== "widget" && !empty && <div class="ask-room"><Ask {...{ subject, route, go, names, results, every }} currency={website?.currency} /></div>}
            {subject.kind !== "widget" && (!empty || route.get("dimension")) && <Segments {...{ subject, route, go, own }} />}
          </Valid>
          <div class="parts">
            {subject.kind !== "widget" && <Variations {...{ results, pictured, subject, route }} />}
            {subject.kind !== "widget" && !empty && <Sold {...{ subject, route, results }} />}
            <Posterior results={results} />
            {subject.kind !== "widget" && !empty && <Changed {...{ subject, results, route }} />}
            <Checks {...{ subject, results, route }} />
            {!empty && <Progress results={results} scored={scored} />}
            {!session.shared && <Logged {...{ route, go }} />}
            <Export path={path} title={detail.body?.name ?? "Lifthouse"} view={view} plot={!empty && subject.kind !== "widget"} />
            <Glossary bayesian={results.methodology === "bayesian"} />
          </div>
        </div>
      )}
    </>
  );
}
