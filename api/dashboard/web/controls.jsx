// @ts-check
import { query, session } from "./api.js";
import { Chips, NewFilter, described } from "./filters.jsx";
import { useAnswer } from "./hooks.js";
import { Clock, Period, dates } from "./period.jsx";
import { compareMetrics, metrics } from "./words.js";

/** @import { TargetedEvent } from "preact" */
/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, Goal, MetricName, Results, Subject } from "./types.d.ts" */

const never = 1 << 30;

/** @param {{ label: string, name: string, options: [string, string][], route: Route, go: Go }} props */
const Choice = ({ label, name, options, route, go }) => (
  <label>{label}
    <select name={name} value={route.get(name) || ""} onChange={(e) => go(route.with(name, e.currentTarget.value))}>
      {options.every(([value]) => value !== (route.get(name) || "")) && <option value={route.get(name)}>{route.get(name)}</option>}
      {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
    </select>
  </label>
);

/** viewedBy describes the view of a route in a line.
 * @param {Route} route @param {Goal[]} goals */
function viewedBy(route, goals) {
  const [from, to] = dates.map((name) => route.get(name)?.slice(0, 10)), who = described(route), goal = route.get("goal"), metric = route.get("compareMetric"), window = route.get("conversionWindow");
  return [
    who[0].toUpperCase() + who.slice(1),
    from || to ? [from && "from " + from, to && "until " + to].filter(Boolean).join(" ") : "all time",
    ...(goal ? [goals.find((g) => String(g.id) === goal)?.name ?? "goal " + goal] : []),
    ...(metric ? [metrics[/** @type {MetricName} */ (metric)] ?? metric] : []),
    ...(window ? ["converted within " + window] : []),
  ].join(" · ");
}

/** goalsIn returns the goals of a scorecard.
 * @param {Results | undefined} scored */
const goalsIn = (scored) => [...new Map((scored?.scorecard ?? []).flatMap(({ goal }) => (goal ? [[goal.id, goal]] : []))).values()];

/** Controls has the goal, metric, dates and filters of a report. A share link cannot list the
 * goals, so its page offers those of the scorecard.
 * @param {{ subject: Subject, route: Route, go: Go, timezone?: string, scored?: Results, own: string[] }} props */
export function Controls({ subject, route, go, timezone, scored, own }) {
  /** @type {Answer<Goal[]>} */
  const goals = useAnswer(!session.shared && "/v1/goals" + query([["websiteId", route.get("websiteId")]]), { every: never });
  const offeredGoals = session.shared ? goalsIn(scored) : goals.body ?? [];
  const offered = compareMetrics[subject.kind];
  /** @param {string} name @returns {(e: TargetedEvent<HTMLInputElement>) => void} */
  const set = (name) => (e) => go(route.with(name, e.currentTarget.value));
  return (
    <section class="settings" aria-label="Settings">
      <details><summary><span id="view">{viewedBy(route, offeredGoals)}</span><b>Filter</b></summary>
      <div class="controls"><div class="choices">
        <Choice label="Goal" name="goal" route={route} go={go} options={[["", subject.kind === "widget" ? "all goals" : "primary goal"], ...offeredGoals.map((g) => /** @type {[string, string]} */ ([String(g.id), g.name]))]} />
        {offered.length > 0 && <Choice label="Metric" name="compareMetric" route={route} go={go} options={[["", "default"], ...offered.map((m) => /** @type {[string, string]} */ ([m, metrics[m]]))]} />}
        <Period route={route} go={go} timezone={timezone} />
        <label>From <input type="date" name="dateFrom" value={route.get(dates[0])?.slice(0, 10) || ""} onChange={set(dates[0])} /></label>
        <label>To (inclusive) <input type="date" name="dateTo" value={route.get(dates[1])?.slice(0, 10) || ""} onChange={set(dates[1])} /></label>
      </div>
      <NewFilter {...{ subject, route, go, own }} /></div>
      </details>
      {timezone && (route.get(dates[0]) || route.get(dates[1])) && <Clock timezone={timezone} />}
      <Chips route={route} go={go} />
    </section>
  );
}
