import uPlot from "uplot";
import { useEffect, useRef } from "preact/hooks";
import { query } from "./api.js";
import { count, isRate, lift, liftSpan, metric, metricSpan, minute, money } from "./format.js";
import { useAnswer, useTheme } from "./hooks.js";
import { tick } from "./forest.jsx";
import { Empty, Fault, Loading, Num } from "./parts.jsx";
import { metrics } from "./words.js";

const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 2]];

// lines are a value with its band, three columns of a chart each.
function columns(points, lines) {
  const data = [points.map((p) => Date.parse(p.time) / 1000)];
  for (const { of } of lines) {
    const found = points.map(of);
    data.push(found.map((e) => e?.value ?? null), found.map((e) => e?.interval?.[0] ?? null), found.map((e) => e?.interval?.[1] ?? null));
  }
  return data;
}

// instant is a tick of the axis of time, in UTC as all times are.
const instant = (seconds, apart) => {
  const at = new Date(seconds * 1000);
  const day = at.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  return apart >= 86400 || seconds % 86400 === 0 ? day : at.toISOString().slice(11, 16);
};

function plan(lines, write, width) {
  const series = [{}], bands = [];
  for (const { index } of lines) {
    const stroke = ink("--v" + (index % 6));
    const edge = { show: true, stroke: stroke + "80", width: 1, dash: dashes[index % 6], points: { show: false } };
    bands.push({ series: [series.length + 2, series.length + 1], fill: stroke + (["2e", "24"][lines.length - 1] || "14") });
    series.push({ stroke, width: 2, dash: dashes[index % 6], points: { size: 5, fill: stroke } }, edge, edge);
  }
  const axis = { stroke: ink("--text"), grid: { stroke: ink("--line"), width: 1 }, ticks: { stroke: ink("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
  return {
    width, height: 240, series, bands, legend: { show: false }, cursor: { show: false }, padding: [8, 24, 0, 0],
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    axes: [{ ...axis, space: 70, values: (_, ticks) => ticks.map((t) => instant(t, ticks[1] - ticks[0])) }, { ...axis, size: 64, values: (_, ticks) => ticks.map(write) }],
  };
}

// Chart draws into a canvas; the table of the same numbers is beside it.
function Chart({ points, lines, write, label }) {
  const host = useRef(), drawn = useRef(), dark = useTheme();
  const kept = JSON.stringify([lines.map((l) => l.index), dark, label]);
  const data = columns(points, lines);
  useEffect(() => {
    const room = host.current;
    drawn.current = new uPlot(plan(lines, write, room.clientWidth), data, room);
    const watch = new ResizeObserver(() => drawn.current.setSize({ width: room.clientWidth, height: 240 }));
    watch.observe(room);
    return () => { watch.disconnect(); drawn.current.destroy(); };
  }, [kept]);
  useEffect(() => { drawn.current.setData(data); }, [JSON.stringify(data)]);
  return <div class="chart" ref={host} role="img" aria-label={label + ". See the data table below."} />;
}

const Legend = ({ lines }) => (
  <p class="legend">{lines.map(({ index, name }) => (
    <span key={name} class={"of v" + (index % 6)}><svg width="30" height="10" aria-hidden="true"><line x1="0" x2="30" y1="5" y2="5" stroke-dasharray={dashes[index % 6].join(" ")} /></svg> {name}</span>
  ))}</p>
);

function Numbers({ points, lines, span, write, title }) {
  return (
    <details>
      <summary>Show data table</summary>
      <div class="scroll tall" tabIndex={0} role="region" aria-label={title}>
        <table>
          <thead><tr><th scope="col">Until</th>{lines.map((l) => <th key={l.name} scope="col">{l.name}</th>)}</tr></thead>
          <tbody>{points.map((p) => (
            <tr key={p.time}><th scope="row">{minute(p.time)}</th>{lines.map((l) => {
              const e = l.of(p);
              return <td key={l.name}>{e ? <><Num value={e.value}>{write(e.value, e.interval)}</Num> <small>{span(e.interval)}</small></> : "–"}</td>;
            })}</tr>
          ))}</tbody>
        </table>
      </div>
    </details>
  );
}

const ofID = (point, id) => point.variations.find((v) => v.id === id);

function Curves({ results }) {
  const points = results.series, name = results.compareMetric || "goalConversionRate";
  if (!(points?.length > 1)) return <Empty>Not enough data for a chart. A chart needs at least two points; a finer granularity can have more.</Empty>;
  const values = results.variations.map((v, index) => ({ index, name: v.name, of: (p) => ofID(p, v.id)?.metrics[name] }));
  const compared = results.variations.map((v, index) => ({ v, index })).filter(({ v }) => v.comparison);
  const fixed = compared.map(({ v, index }) => ({ index, name: v.name, of: (p) => ofID(p, v.id)?.comparison?.improvement }));
  const always = compared.filter(({ v }) => v.comparison.sequential).map(({ v, index }) => ({
    index, name: v.name + ", always valid",
    of: (p) => {
      const c = ofID(p, v.id)?.comparison;
      return c?.sequential && { value: c.improvement.value, interval: c.sequential.improvement };
    },
  }));
  const level = results.significanceLevel + "\u00a0%";
  return (
    <>
      <div class="pair">
        <figure>
          <figcaption>{metrics[name]} (cumulative) with {level} interval</figcaption>
          <Chart points={points} lines={values} write={(x) => (isRate(name) ? Number((100 * x).toFixed(3)) + " %" : money(x))} label={metrics[name] + " over time"} />
          <Legend lines={values} />
          <Numbers points={points} lines={values} write={(x, i) => metric(name, x, i)} span={(i) => metricSpan(name, i)} title={metrics[name] + " over time: data"} />
        </figure>
        {points.some((p) => fixed.some((l) => l.of(p)?.value !== null && l.of(p)?.value !== undefined)) && (
          <figure>
            <figcaption>Uplift (cumulative) with {level} {always.length ? "always-valid confidence" : results.methodology === "bayesian" ? "credible" : "confidence"} interval</figcaption>
            <Chart points={withoutWideStart(points, always.length ? always : fixed)} lines={always.length ? always : fixed} write={tick} label="Uplift over time" />
            <Legend lines={fixed} />
            <Numbers points={points} lines={[...fixed, ...always]} write={lift} span={(i) => liftSpan(i)} title="Uplift over time: data" />
          </figure>
        )}
      </div>
    </>
  );
}

// withoutWideStart leaves out the first points, whose bands are so wide that nothing
// else could be seen; the table has them all.
function withoutWideStart(points, lines) {
  const width = (p) => Math.max(...lines.map(({ of }) => { const i = of(p)?.interval; return i && i[0] !== null && i[1] !== null ? i[1] - i[0] : Infinity; }));
  const last = width(points[points.length - 1]);
  const from = points.findIndex((p) => width(p) <= 3 * last);
  return Number.isFinite(last) && from > 0 ? points.slice(from) : points;
}

export function OverTime({ subject, route, go }) {
  const interval = route.get("interval") || "day";
  const { body, error, loading, again } = useAnswer(subject.path + "/results" + query([...route.asked.filter(([n]) => n !== "dimension"), ["interval", interval]]), { every: 30000 });
  return (
    <section aria-labelledby="overtime" aria-busy={loading}>
      <h2 id="overtime">Over time</h2>
      <label class="inline">Granularity <select value={interval} onChange={(e) => go(route.with("interval", e.target.value === "day" ? "" : e.target.value))}>
        {["hour", "day", "week"].map((i) => <option key={i} value={i}>{i}</option>)}
      </select></label>
      {error && <Fault error={error} again={again} />}
      {body ? <><Curves results={body} />{body.series?.length > 1 && <p class="quiet">{count(body.series.length)} points until {minute(body.dataThrough)}</p>}</> : loading && <Loading what="charts" />}
    </section>
  );
}
