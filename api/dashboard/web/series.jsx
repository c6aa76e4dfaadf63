// @ts-check
import { useMemo, useState } from "preact/hooks";
import { query, session } from "./api.js";
import { Chart, dashes, drawingOf } from "./chart.jsx";
import { day, lastDay, minute } from "./format.js";
import { useAnswer } from "./hooks.js";
import { later } from "./later.jsx";
import { Empty, Fault, Loading, Num } from "./parts.jsx";
import { marksOf, unitOf } from "./points.js";
import { viewsOf } from "./views.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Mark } from "./points.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, LogEntry, Point, Results, Subject, View } from "./types.d.ts" */

const Annotations = later(() => import("./annotations.jsx").then((m) => m.Annotations));
const ByAge = later(() => import("./age.jsx").then((m) => m.ByAge));
const Numbers = later(() => import("./annotations.jsx").then((m) => m.Numbers));

/** lookAt names the look that ends at the time of a point, if there is one.
 * @param {Results} results @param {Point} point */
function lookAt({ looks }, { time }) {
  const look = looks?.find((l) => Date.parse(l.end) === Date.parse(time));
  return look && "look " + look.number;
}

/** saidOf describes the marks of a chart.
 * @param {Results} results @param {Mark[]} marks */
function saidOf({ nextLook }, marks) {
  const looks = marks.filter((m) => !m.next), next = nextLook ? `. The next look is on ${lastDay(nextLook.end)}` : "";
  if (looks.length === 0) return next;
  const last = looks[looks.length - 1], which = looks.length > 1 ? `s mark looks ${looks[0].number} to ${last.number}, the last one on` : ` marks look ${last.number},`;
  return `. Vertical line${which} ${lastDay(new Date(last.at * 1000).toISOString())}${next}`;
}

/** when formats the period of a point: its end if the numbers are cumulative, otherwise
 * its hour, day or week.
 * @param {Point[]} points @param {number} at @param {boolean} cumulative */
function when(points, at, cumulative) {
  const end = points[at].time, unit = unitOf(points);
  if (cumulative) return "until " + minute(end);
  if (unit === "hour") return minute(new Date(Date.parse(end) - 3600000).toISOString()).replace(" UTC", "") + " to " + end.slice(11, 16) + " UTC";
  return unit === "day" ? lastDay(end) : `${day(new Date(Date.parse(end) - 7 * 86400000).toISOString())} to ${lastDay(end)}`;
}

/** @param {{ index: number }} props */
const Stroke = ({ index }) => <svg width="30" height="10" aria-hidden="true"><line x1="0" x2="30" y1="5" y2="5" stroke-dasharray={dashes[index % 6].join(" ")} /></svg>;

/** @param {{ dashes: string }} props */
const Dash = ({ dashes }) => <svg width="10" height="14" aria-hidden="true"><line x1="5" x2="5" y1="0" y2="14" stroke-dasharray={dashes} /></svg>;

/** Readout shows the values of a point. It is also the legend. Its size is the same for
 * all points.
 * @param {{ results: Results, view: View, points: Point[], at: number, pointed: boolean, open: boolean, marks: Mark[] }} props open: the period of the point is not over */
function Readout({ results, view, points, at, pointed, open, marks }) {
  const looks = marks.some((m) => !m.next);
  return (
    <div class={"readout" + (pointed || view.name !== "lift" ? "" : " known")} data-at={points[at].time}>
      <p class="time">{when(points, at, view.cumulative)} <span>{lookAt(results, points[at]) ?? (open ? unitOf(points) + " not over" : pointed ? "" : "latest")}</span></p>
      <ul>
        {view.lines.map(({ index, name, entries }) => {
          const e = entries[at];
          return (
            <li key={name} class={"of v" + (index % 6)}>
              <Stroke index={index} /><span class="who">{name}</span>
              <b><Num value={e?.value}>{view.write(e?.value ?? null, e?.interval ?? null)}</Num></b>
              <span class="span" data-interval={e?.interval ? JSON.stringify(e.interval) : undefined}>{view.span(e?.interval ?? null)}</span>
            </li>
          );
        })}
      </ul>
      {(looks || results.nextLook) && (
        <p class="look">{looks && <span><Dash dashes="5 3" /> looks</span>} {results.nextLook && <span class="next"><Dash dashes="2 3" /> next look {lastDay(results.nextLook.end)}</span>}</p>
      )}
    </div>
  );
}

/** Switches are the radio buttons of the views and the granularity.
 * @param {{ views: { name: string, label: string }[], chosen?: string, interval: string, route: Route, go: Go }} props */
function Switches({ views, chosen, interval, route, go }) {
  return (
    <div class="switches">
      {views.length > 1 && (
        <fieldset class="switch" aria-label="View">
          {views.map((v, i) => (
            <label key={v.name}><input type="radio" name="view" value={v.name} checked={v.name === chosen} onChange={() => go(route.with("view", i === 0 ? "" : v.name), { replace: true })} /><span>{v.label}</span></label>
          ))}
        </fieldset>
      )}
      {chosen !== "age" && <label class="inline">Granularity <select name="interval" value={interval} onChange={(e) => go(route.with("interval", e.currentTarget.value === "day" ? "" : e.currentTarget.value))}>
        {["hour", "day", "week"].map((i) => <option key={i} value={i}>{i}</option>)}
      </select></label>}
    </div>
  );
}

/** Curves shows a view: the readout, the chart with its annotations, and the data table.
 * @param {{ results: Results, points: Point[], view: View, annotations?: LogEntry[] }} props */
export function Curves({ results, points, view, annotations = [] }) {
  const [pointed, point] = useState(/** @type {number | undefined} */ (undefined));
  const drawing = useMemo(() => drawingOf(view, points), [view, points]);
  const marks = useMemo(() => marksOf(results, points), [results, points]), last = points.length - 1, at = Math.min(pointed ?? last, last);
  const open = Date.parse(points[at].time) > Date.parse(results.dataThrough ?? "");
  const said = [when(points, at, view.cumulative), ...view.lines.map(({ name, entries: { [at]: e } }) => `${name} ${view.write(e?.value ?? null, e?.interval ?? null)}${e?.interval ? `, ${view.span(e.interval)}` : ""}`)].join("; ");
  const label = `${view.label} over time${saidOf(results, marks)}. See the data table below.`;
  return (
    <figure>
      <figcaption>{view.caption}</figcaption>
      <Readout {...{ results, view, points, at, open, marks }} pointed={pointed !== undefined} />
      <Chart drawing={drawing} label={label} at={pointed} said={said} marks={marks} onMove={point} />
      {annotations.length > 0 && <Annotations {...{ annotations, points, marks }} times={drawing.data[0]} />}
      <details><summary>Show data table{drawing.outside > 0 && " (early intervals exceed the axis)"}</summary>
        <Numbers {...{ points, view, annotations }} unit={unitOf(points)} when={(i) => when(points, i, false)} look={(p) => lookAt(results, p)} /></details>
    </figure>
  );
}

/** OverTime shows a chart of the series.
 * @param {{ subject: Subject, route: Route, go: Go }} props */
export function OverTime({ subject, route, go }) {
  const interval = route.get("interval") || "day", byAge = route.get("view") === "age" && subject.kind !== "widget";
  /** @type {Answer<Results>} */
  const { body, error, loading, again } = useAnswer(!byAge && subject.path + "/results" + query([...route.asked.filter(([n]) => n !== "dimension"), ["interval", interval]]), { every: 30000 });
  /** @type {Answer<LogEntry[]>} */
  const { body: annotations } = useAnswer(!byAge && !session.shared && "/v1/log" + query([...["campaign", "widget", "experiment", "website"].map((n) => /** @type {[string, string | undefined]} */ ([n + "Id", route.get(n === "website" ? "websiteId" : n)])), ["entry", "annotation"], ["limit", 1000]]), { every: 60000 });
  const points = body?.series && body.series.length > 1 ? body.series : undefined;
  const views = useMemo(() => (body && points ? viewsOf(body, points) : []), [body]);
  const view = views.find((v) => v.name === route.get("view")) ?? views[0];
  const tabs = [...(views.length > 0 ? views : [{ name: "lift", label: "Over time" }]), ...(subject.kind === "widget" || body?.question?.metric ? [] : [{ name: "age", label: "By age" }])];
  return (
    <section class="overtime" aria-labelledby="overtime" aria-busy={!byAge && loading}>
      <div class="head"><h2 id="overtime">Over time</h2>
        <Switches {...{ interval, route, go }} views={tabs} chosen={byAge ? "age" : view?.name} /></div>
      {byAge && <ByAge {...{ subject, route }} />}
      {error && <Fault error={error} again={again} />}
      {!byAge && body && points && view && <Curves results={body} {...{ points, view, annotations }} />}
      {!byAge && body && !points && <Empty>Not enough data for a chart. A chart needs at least two points; a finer granularity can have more.</Empty>}
      {!byAge && !body && loading && <div class="room"><Loading what="the chart" /></div>}
    </section>
  );
}
