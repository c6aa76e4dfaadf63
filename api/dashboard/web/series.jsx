// @ts-check
import uPlot from "uplot";
import { useEffect, useRef } from "preact/hooks";
import { query } from "./api.js";
import { count, isRate, lift, liftSpan, metric, metricSpan, minute, money } from "./format.js";
import { useAnswer, useTheme } from "./hooks.js";
import { comparedOf, tick } from "./forest.jsx";
import { Empty, Fault, Loading, Num } from "./parts.jsx";
import { lastDay } from "./planned.jsx";
import { metrics } from "./words.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { AlignedData, Band, Options, Series } from "uplot" */
/** @import { Go, Interval, Line, Point, Results, Subject } from "./types.d.ts" */

/** ink returns the colour of a CSS variable.
 * @param {string} name */
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/** @type {number[][]} */
const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 2]];

/** columns returns the data of a chart: the times, then for each line its values and
 * the ends of its intervals.
 * @param {Point[]} points @param {Line[]} lines
 * @returns {AlignedData} */
function columns(points, lines) {
  /** @type {[number[], ...(number | null)[][]]} */
  const data = [points.map((p) => Date.parse(p.time) / 1000)];
  for (const { of } of lines) {
    const found = points.map(of);
    data.push(found.map((e) => e?.value ?? null), found.map((e) => e?.interval?.[0] ?? null), found.map((e) => e?.interval?.[1] ?? null));
  }
  return data;
}

/** instant formats a tick of the time axis in UTC.
 * @param {number} seconds @param {number} apart seconds between ticks */
const instant = (seconds, apart) => {
  const at = new Date(seconds * 1000);
  const day = at.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  return apart >= 86400 || seconds % 86400 === 0 ? day : at.toISOString().slice(11, 16);
};

/** lookOf returns the time of the planned look in seconds, if it is within the points.
 * @param {Results} results @param {Point[]} points */
function lookOf({ plannedLook }, points) {
  const time = Date.parse(plannedLook?.time ?? "");
  return Date.parse(points[0].time) <= time && time <= Date.parse(points[points.length - 1].time) ? time / 1000 : undefined;
}

/** mark draws a vertical line with a label at the planned look.
 * @param {uPlot} chart @param {number} look in seconds */
function mark(chart, look) {
  const { ctx, bbox } = chart, x = Math.round(chart.valToPos(look, "x", true)), unit = uPlot.pxRatio, left = x < bbox.left + bbox.width / 2;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = ink("--text");
  ctx.lineWidth = 1.5 * unit;
  ctx.setLineDash([6 * unit, 4 * unit]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.font = `${12 * unit}px system-ui, sans-serif`;
  ctx.textAlign = left ? "left" : "right";
  ctx.textBaseline = "top";
  ctx.setLineDash([]);
  ctx.lineWidth = 4 * unit;
  ctx.strokeStyle = ink("--card"); // separates the label from the curves
  const at = /** @type {const} */ (["planned look", x + (left ? 6 : -6) * unit, bbox.top + 2 * unit]);
  ctx.strokeText(...at);
  ctx.fillText(...at);
  ctx.restore();
}

/** plan returns the options of a chart.
 * @param {Line[]} lines @param {(x: number) => string} write @param {number} width @param {number} [look] of the planned look, in seconds
 * @returns {Options} */
function plan(lines, write, width, look) {
  /** @type {Series[]} */
  const series = [{}];
  /** @type {Band[]} */
  const bands = [];
  for (const { index } of lines) {
    const stroke = ink("--v" + (index % 6));
    const edge = { show: true, stroke: stroke + "80", width: 1, dash: dashes[index % 6], points: { show: false } };
    bands.push({ series: [series.length + 2, series.length + 1], fill: stroke + (["2e", "24"][lines.length - 1] || "14") });
    series.push({ stroke, width: 2, dash: dashes[index % 6], points: { size: 5, fill: stroke } }, edge, edge);
  }
  const axis = { stroke: ink("--text"), grid: { stroke: ink("--line"), width: 1 }, ticks: { stroke: ink("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
  return {
    hooks: look === undefined ? {} : { draw: [(chart) => mark(chart, look)] },
    width, height: 240, series, bands, legend: { show: false }, cursor: { show: false }, padding: [8, 24, 0, 0],
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    axes: [{ ...axis, space: 70, values: (_, ticks) => ticks.map((t) => instant(t, ticks[1] - ticks[0])) }, { ...axis, size: 64, values: (_, ticks) => ticks.map(write) }],
  };
}

/** Chart draws lines on a canvas. A table below it has the same data.
 * @param {{ points: Point[], lines: Line[], write: (x: number) => string, label: string, look?: number }} props */
function Chart({ points, lines, write, label, look }) {
  const host = useRef(/** @type {HTMLDivElement | null} */ (null)), drawn = useRef(/** @type {uPlot | null} */ (null)), dark = useTheme();
  const kept = JSON.stringify([lines.map((l) => l.index), dark, label, look]);
  const data = columns(points, lines);
  useEffect(() => {
    const room = /** @type {HTMLDivElement} */ (host.current);
    const chart = drawn.current = new uPlot(plan(lines, write, room.clientWidth, look), data, room);
    const watch = new ResizeObserver(() => chart.setSize({ width: room.clientWidth, height: 240 }));
    watch.observe(room);
    return () => { watch.disconnect(); chart.destroy(); };
  }, [kept]);
  useEffect(() => { drawn.current?.setData(data); }, [JSON.stringify(data)]);
  return <div class="chart" ref={host} role="img" aria-label={label + (look === undefined ? "" : ". A vertical line marks the planned look, " + lastDay(new Date(look * 1000).toISOString())) + ". See the data table below."} />;
}

/** @param {{ lines: Line[], look?: number }} props */
const Legend = ({ lines, look }) => (
  <p class="legend">{lines.map(({ index, name }) => (
    <span key={name} class={"of v" + (index % 6)}><svg width="30" height="10" aria-hidden="true"><line x1="0" x2="30" y1="5" y2="5" stroke-dasharray={dashes[index % 6].join(" ")} /></svg> {name}</span>
  ))}{look !== undefined && <span class="look"><svg width="10" height="14" aria-hidden="true"><line x1="5" x2="5" y1="0" y2="14" stroke-dasharray="5 3" /></svg> planned look, {lastDay(new Date(look * 1000).toISOString())}</span>}</p>
);

/** Numbers is the data table of a chart.
 * @param {{ points: Point[], lines: Line[], span: (interval: Interval | null) => string, write: (value: number | null, interval: Interval | null) => string, title: string }} props */
function Numbers({ points, lines, span, write, title }) {
  return (
    <details>
      <summary>Show data table</summary>
      <div class="scroll tall" tabIndex={0} role="region" aria-label={title}>
        <table>
          <thead><tr><th scope="col">Until</th>{lines.map((l) => <th key={l.name} scope="col">{l.name}</th>)}</tr></thead>
          <tbody>{points.map((p) => (
            <tr key={p.time}><th scope="row">{minute(p.time)}{p.plannedLook && <small>planned look</small>}</th>{lines.map((l) => {
              const e = l.of(p);
              return <td key={l.name}>{e ? <><Num value={e.value}>{write(e.value, e.interval)}</Num> <small>{span(e.interval)}</small></> : "–"}</td>;
            })}</tr>
          ))}</tbody>
        </table>
      </div>
    </details>
  );
}

/** @param {Point} point @param {number} id */
const ofID = (point, id) => point.variations.find((v) => v.id === id);

/** @param {{ results: Results }} props */
function Curves({ results }) {
  const points = results.series, name = results.compareMetric || "goalConversionRate";
  if (!points || points.length < 2) return <Empty>Not enough data for a chart. A chart needs at least two points; a finer granularity can have more.</Empty>;
  /** @type {Line[]} */
  const values = results.variations.map((v, index) => ({ index, name: v.name, of: (p) => ofID(p, v.id)?.metrics[name] }));
  const compared = comparedOf(results);
  /** @type {Line[]} */
  const fixed = compared.map((v) => ({ index: v.index, name: v.name, of: (p) => ofID(p, v.id)?.comparison?.improvement }));
  /** @type {Line[]} */
  const always = compared.filter((v) => v.comparison.sequential).map((v) => ({
    index: v.index, name: v.name + ", always valid",
    of: (p) => {
      const c = ofID(p, v.id)?.comparison;
      return c?.sequential && { value: c.improvement.observed ?? c.improvement.value, interval: c.sequential.improvement };
    },
  }));
  const level = results.significanceLevel + "\u00a0%", bayesian = results.methodology === "bayesian";
  const uplifts = always.length && !bayesian ? always : fixed, later = withoutWideStart(points, uplifts);
  const look = lookOf(results, points), laterLook = lookOf(results, later);
  return (
    <>
      <div class="pair">
        <figure>
          <figcaption>{metrics[name]} (cumulative) with {level} interval</figcaption>
          <Chart points={points} lines={values} write={(x) => (isRate(name) ? Number((100 * x).toFixed(3)) + " %" : money(x))} label={metrics[name] + " over time"} look={look} />
          <Legend lines={values} look={look} />
          <Numbers points={points} lines={values} write={(x, i) => metric(name, x, i)} span={(i) => metricSpan(name, i)} title={metrics[name] + " over time: data"} />
        </figure>
        {points.some((p) => fixed.some((l) => l.of(p)?.value !== null && l.of(p)?.value !== undefined)) && (
          <figure>
            <figcaption>Uplift (cumulative) with {level} {bayesian ? "credible" : always.length ? "always-valid confidence" : "confidence"} interval{look && always.length && !bayesian ? "; that of the planned look is narrower" : ""}</figcaption>
            <Chart points={later} lines={uplifts} write={tick} label="Uplift over time" look={laterLook} />
            <Legend lines={fixed} look={laterLook} />
            <Numbers points={points} lines={[...fixed, ...always]} write={lift} span={(i) => liftSpan(i)} title="Uplift over time: data" />
          </figure>
        )}
      </div>
    </>
  );
}

/** withoutWideStart removes the first points, whose wide intervals would hide all
 * others. The table has all points.
 * @param {Point[]} points @param {Line[]} lines */
function withoutWideStart(points, lines) {
  /** @param {Point} p */
  const width = (p) => Math.max(...lines.map(({ of }) => { const i = of(p)?.interval; return i && i[0] !== null && i[1] !== null ? i[1] - i[0] : Infinity; }));
  const last = width(points[points.length - 1]);
  const from = points.findIndex((p) => width(p) <= 3 * last);
  return Number.isFinite(last) && from > 0 ? points.slice(from) : points;
}

/** OverTime shows charts of the series.
 * @param {{ subject: Subject, route: Route, go: Go }} props */
export function OverTime({ subject, route, go }) {
  const interval = route.get("interval") || "day";
  /** @type {Answer<Results>} */
  const { body, error, loading, again } = useAnswer(subject.path + "/results" + query([...route.asked.filter(([n]) => n !== "dimension"), ["interval", interval]]), { every: 30000 });
  return (
    <section aria-labelledby="overtime" aria-busy={loading}>
      <h2 id="overtime">Over time</h2>
      <label class="inline">Granularity <select value={interval} onChange={(e) => go(route.with("interval", e.currentTarget.value === "day" ? "" : e.currentTarget.value))}>
        {["hour", "day", "week"].map((i) => <option key={i} value={i}>{i}</option>)}
      </select></label>
      {error && <Fault error={error} again={again} />}
      {body ? <><Curves results={body} />{body.series && body.series.length > 1 && <p class="quiet">{count(body.series.length)} points until {minute(body.dataThrough)}</p>}</> : loading && <Loading what="charts" />}
    </section>
  );
}
