// @ts-check
import "./shared.js";
import { query } from "./api.js";
import { tick } from "./forest.jsx";
import { count, lift, liftSpan, metric, text } from "./format.js";
import { useAnswer } from "./hooks.js";
import { DataTable, Empty, Fault, Loading, Mark, Num } from "./parts.jsx";
import { Plane, pathOf } from "./plane.jsx";
import { scaleOf } from "./scale.js";
import { nameOf } from "./words.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Across, Up } from "./plane.jsx" */
/** @import { Route } from "./route.js" */
/** @import { Curve, Interval, Results, Subject } from "./types.d.ts" */

/** Band is the area between the ends of intervals.
 * @param {{ x: Across, y: Up, intervals: (Interval | null | undefined)[], class: string }} props */
function Band({ x, y, intervals, class: name }) {
  const upper = intervals.map((i, at) => (i ? `${x(at)},${y(i[1], Infinity)}` : "")), lower = intervals.map((i, at) => (i ? `${x(at)},${y(i[0], -Infinity)}` : ""));
  return <polygon class={name} points={[...upper, ...lower.reverse()].join(" ")} />;
}

/** Drawing shows the lift of a variation by age, in its two bands.
 * @param {{ curve: Curve, at: number, name: string }} props */
function Drawing({ curve, at, name }) {
  const points = curve.points.map((p) => ({ day: p.day, ...p.variations[at] })), last = points.length - 1;
  const single = points.map((p) => p.comparison?.improvement), together = points.map((p) => p.simultaneous?.improvement.interval);
  const scale = scaleOf([0, ...single.slice(1).flatMap((e) => [e?.value, ...(e?.interval ?? [])]), ...together.slice(2).flatMap((i) => i ?? [])], 4);
  const every = Math.ceil(points.length / 10);
  /** @type {[number, string][]} */
  const marks = points.flatMap(({ day: d }, i) => ((i + 1) % every === 0 || (d === 1 && every > 2) ? [[i, String(d)]] : []));
  return (
    <Plane {...{ scale, last, marks }} index={at} write={tick} label={`${name}: lift by age, from ${lift(single[0]?.value, single[0]?.interval)} on the first day to ${lift(single.at(-1)?.value, single.at(-1)?.interval)} after ${points[last].day} days`}>
      {(x, y) => <>
        <Band {...{ x, y }} intervals={together} class="together" />
        <Band {...{ x, y }} intervals={single.map((e) => e?.interval)} class="single" />
        <polyline class="line" points={pathOf(single.map((e) => e?.value), x, y)} />
      </>}
    </Plane>
  );
}

/** Table is the data of the curve.
 * @param {{ curve: Curve, results: Results }} props */
function Table({ curve, results }) {
  const name = results.compareMetric || "goalConversionRate", [control, ...treatments] = results.variations;
  return (
    <details>
      <summary>Show data table</summary>
      <DataTable label="By age: data" heads={["Day", control.name, ...treatments.flatMap((v) => [v.name, "Lift", "All days together"])]} tall>
        {curve.points.map((p) => (
          <tr key={p.day}><th scope="row">{p.day}</th>{p.variations.map(({ id, value, comparison: c, simultaneous: s }) => [
            <td key={id}><Num value={value}>{metric(name, value)}</Num></td>,
            c && <td key={"u" + id}><Num value={c.improvement.value}>{lift(c.improvement.value, c.improvement.interval)}</Num> <small>{liftSpan(c.improvement.interval)}</small></td>,
            c && <td key={"t" + id}>{liftSpan(s?.improvement.interval)}</td>,
          ])}</tr>
        ))}
      </DataTable>
    </details>
  );
}

/** ByAge shows the lift by the time since the first view.
 * @param {{ subject: Subject, route: Route }} props */
export function ByAge({ subject, route }) {
  /** @type {Answer<Results>} */
  const { body, error, loading, again } = useAnswer(subject.path + "/results" + query([...route.asked.filter(([n]) => n !== "dimension"), ["curve", "exposureDay"]]), { every: 60000 });
  const curve = body?.curve;
  if (error) return <Fault error={error} again={again} />;
  if (!body || !curve) return loading ? <div class="room"><Loading what="the curve" /></div> : null;
  if (curve.cohort.visitors === 0) return <Empty>No visitor was first exposed two days ago or earlier.</Empty>;
  const name = nameOf(body.compareMetric, null);
  return (
    <figure id="by-age">
      <figcaption>Lift of {name.toLowerCase()} over {body.variations[0].name} by the days since the first view (cumulative). Inner band: {body.significanceLevel}{"\u00a0"}% interval of a single test; outer band: it contains the whole curve.</figcaption>
      {body.variations.map((v, at) => at > 0 && <div key={v.id}>{body.variations.length > 2 && <p class="who"><Mark index={at} />{"\u00a0"}{v.name}</p>}<Drawing {...{ curve, at }} name={v.name} /></div>)}
      {curve.novelty.map((n) => <p key={n.id} class={n.finding ? "finding" : "quiet"}>{text(n.text)}</p>)}
      <p class="quiet note">{count(curve.cohort.visitors)} visitors whose first view was at least {curve.cohort.days} days ago; {count(curve.cohort.immatureVisitors)} came later.</p>
      <Table {...{ curve }} results={body} />
    </figure>
  );
}
