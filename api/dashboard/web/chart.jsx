// @ts-check
import uPlot from "uplot";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useTheme } from "./hooks.js";
import { axisRange, endsOf, middlesOf } from "./points.js";

/** @import { TargetedKeyboardEvent } from "preact" */
/** @import { AlignedData, Band, Options, Series } from "uplot" */
/** @import { Mark } from "./points.js" */
/** @import { Line, Point, View } from "./types.d.ts" */

const height = 240; // px
const paper = 650; // px, the width of a printed chart
const wholes = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((x) => x * 10 ** power)).flat();

/** @type {number[][]} */
export const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 2]];

/** ink returns the colour of a CSS variable.
 * @param {string} name */
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** @typedef {{ view: View, data: AlignedData, low: number, high: number, outside: number }} Drawing */

/** drawingOf returns the data of a chart and the range of its value axis. The data are
 * the times, then for each line its values and the ends of its intervals.
 * @param {View} view @param {Point[]} points
 * @returns {Drawing} */
export function drawingOf(view, points) {
  /** @type {[number[], ...(number | null)[][]]} */
  const data = [view.cumulative ? endsOf(points) : middlesOf(points)];
  for (const { entries } of view.lines) {
    data.push(entries.map((e) => e?.value ?? null), entries.map((e) => e?.interval?.[0] ?? null), entries.map((e) => e?.interval?.[1] ?? null));
  }
  return { view, data, ...axisRange(view.lines.map((l) => l.entries), view.marks) };
}

/** instant formats a tick of the time axis in UTC.
 * @param {number} seconds @param {number} apart seconds between ticks */
const instant = (seconds, apart) => {
  const at = new Date(seconds * 1000);
  const day = at.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  return apart >= 86400 || seconds % 86400 === 0 ? day : at.toISOString().slice(11, 16);
};

const space = 56; // px between the labels of two marks at least

/** mark draws a vertical line with a label at each look and at the next one.
 * @param {uPlot} chart @param {Mark[]} marks */
function mark(chart, marks) {
  const { ctx, bbox } = chart, unit = uPlot.pxRatio;
  let free = bbox.left + bbox.width; // right end of the room for labels
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.font = `${12 * unit}px system-ui, sans-serif`;
  ctx.textAlign = "right";
  ctx.textBaseline = "top";
  for (const { number, at, next } of marks.toReversed()) {
    const x = Math.round(chart.valToPos(at, "x", true));
    ctx.strokeStyle = ctx.fillStyle = ink(next ? "--accent" : "--text");
    ctx.lineWidth = 1.25 * unit;
    ctx.setLineDash(next ? [2 * unit, 3 * unit] : [6 * unit, 4 * unit]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (x > free || x - space * unit < bbox.left) continue;
    free = x - space * unit;
    ctx.setLineDash([]);
    ctx.lineWidth = 4 * unit;
    ctx.strokeStyle = ink("--card"); // separates the label from the curves
    const label = /** @type {const} */ ([next ? "next look" : "look " + number, x - 5 * unit, bbox.top + 2 * unit]);
    ctx.strokeText(...label);
    ctx.fillText(...label);
  }
  ctx.restore();
}

/** beam draws the intervals of the looks: vertical bars with a cap at each end within the
 * chart. Bars of several variations are side by side.
 * @param {uPlot} chart @param {View} view */
function beam(chart, { beams, lines }) {
  const { ctx, bbox } = chart, unit = uPlot.pxRatio, { min = 0, max = 0 } = chart.scales.y;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left - 8 * unit, bbox.top, bbox.width + 16 * unit, bbox.height);
  ctx.clip();
  ctx.lineWidth = 2.5 * unit;
  for (const { index, at, value, interval: [lower, upper] } of beams) {
    const place = lines.findIndex((l) => l.index === index) - (lines.length - 1) / 2;
    const x = Math.round(chart.valToPos(at, "x", true) + 7 * unit * place);
    /** @param {number} y */
    const height = (y) => chart.valToPos(Math.max(min, Math.min(y, max)), "y", true);
    ctx.strokeStyle = ctx.fillStyle = ink("--v" + (index % 6));
    ctx.beginPath();
    ctx.moveTo(x, height(lower ?? -Infinity));
    ctx.lineTo(x, height(upper ?? Infinity));
    for (const end of [lower, upper]) {
      if (end === null || end < min || end > max) continue;
      ctx.moveTo(x - 4 * unit, height(end));
      ctx.lineTo(x + 4 * unit, height(end));
    }
    ctx.stroke();
    if (value === null || value < min || value > max) continue;
    ctx.beginPath();
    ctx.arc(x, height(value), 4 * unit, 0, 2 * Math.PI);
    ctx.fill();
  }
  ctx.restore();
}

/** curvesOf returns the series of the lines and the bands of their intervals.
 * @param {Line[]} lines @param {boolean} cumulative @returns {{ series: Series[], bands: Band[] }} */
function curvesOf(lines, cumulative) {
  /** @type {Series[]} */
  const series = [{}];
  /** @type {Band[]} */
  const bands = [];
  for (const { index, thin } of lines) {
    const stroke = ink("--v" + (index % 6));
    const edge = { show: cumulative, stroke: stroke + "80", width: 1, dash: dashes[index % 6], points: { show: false } };
    if (cumulative) bands.push({ series: [series.length + 2, series.length + 1], fill: stroke + (["2e", "24"][lines.length - 1] || "14") });
    series.push({ stroke, width: thin ? 1 : 2, dash: dashes[index % 6], points: { show: thin ? false : undefined, size: 5, fill: stroke } }, edge, edge);
  }
  return { series, bands };
}

/** plan returns the options of a chart.
 * @param {View} view @param {number} width in px
 * @param {Mark[]} marks the looks; the time axis reaches to the last one
 * @param {() => [number, number]} range of the value axis
 * @param {(chart: uPlot) => void} moved is called when the crosshair moves
 * @returns {Options} */
function plan(view, width, marks, range, moved) {
  const last = Math.max(...marks.map((m) => m.at));
  const axis = { stroke: ink("--text"), grid: { stroke: ink("--line"), width: 1 }, ticks: { stroke: ink("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
  return {
    width, height, ...curvesOf(view.lines, view.cumulative), legend: { show: false }, padding: [8, 24, 0, 0],
    scales: { x: { range: (_, low, high) => [low, Math.max(high, last)] }, y: { range } },
    hooks: { draw: [(chart) => mark(chart, marks), (chart) => beam(chart, view)], setCursor: [moved] },
    cursor: {
      y: false, drag: { x: false, y: false, setScale: false },
      points: { size: (_, series) => (series % 3 === 1 ? 11 : 0), width: (_, series) => (series % 3 === 1 ? 2 : 0), stroke: ink("--card") },
      move: (chart, left, top) => [left < 0 ? left : chart.valToPos(chart.data[0][chart.posToIdx(left)], "x"), top],
    },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    axes: [{ ...axis, space: 70, values: (_, ticks) => ticks.map((t) => instant(t, ticks[1] - ticks[0])) }, { ...axis, size: 64, values: (_, ticks) => ticks.map(view.tick), ...(view.cumulative ? {} : { incrs: wholes }) }],
  };
}

const steps = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -7, PageUp: 7, Home: -Infinity, End: Infinity });

/** useChart draws on a canvas and returns a function that moves the crosshair to a
 * point, or removes it.
 * @param {Drawing} drawing @param {Mark[]} marks @param {(at: number | undefined) => void} onMove */
function useChart(drawing, marks, onMove) {
  const { view, data } = drawing, dark = useTheme();
  const host = useRef(/** @type {HTMLDivElement | null} */ (null)), drawn = useRef(/** @type {uPlot | null} */ (null));
  const latest = useRef({ drawing, onMove }), exact = useRef(/** @type {number | undefined} */ (undefined));
  latest.current = { drawing, onMove };
  const kept = JSON.stringify([view.name, view.label, view.lines.map((l) => l.index), view.beams, dark, marks]);
  useLayoutEffect(() => {
    const room = /** @type {HTMLDivElement} */ (host.current);
    const range = /** @returns {[number, number]} */ () => [latest.current.drawing.low, latest.current.drawing.high];
    const moved = /** @param {uPlot} chart */ (chart) => latest.current.onMove(exact.current ?? chart.cursor.idx ?? undefined);
    const chart = drawn.current = new uPlot(plan(view, room.clientWidth, marks, range, moved), data, room);
    const watch = new ResizeObserver(() => chart.setSize({ width: room.clientWidth, height }));
    const onPaper = () => chart.setSize({ width: Math.min(room.clientWidth, paper), height });
    const onScreen = () => chart.setSize({ width: room.clientWidth, height });
    addEventListener("beforeprint", onPaper);
    addEventListener("afterprint", onScreen);
    watch.observe(room);
    return () => {
      removeEventListener("beforeprint", onPaper);
      removeEventListener("afterprint", onScreen);
      watch.disconnect();
      chart.destroy();
    };
  }, [kept]);
  useLayoutEffect(() => { drawn.current?.setData(data); }, [data]);
  /** @param {number | undefined} at */
  const point = (at) => {
    const chart = drawn.current;
    if (!chart) return;
    exact.current = at;
    chart.setCursor(at === undefined ? { left: -10, top: -10 } : { left: chart.valToPos(data[0][at], "x"), top: 1 });
    exact.current = undefined;
  };
  return { host, point };
}

/** Chart draws lines with their intervals. The pointer and the arrow keys move a
 * crosshair along the points. A table below it has the same data.
 * @param {{ drawing: Drawing, label: string, at: number | undefined, said: string, marks: Mark[], onMove: (at: number | undefined) => void }} props at is the point of the crosshair, said its values as a text */
export function Chart({ drawing, label, at, said, marks, onMove }) {
  const { host, point } = useChart(drawing, marks, onMove), last = drawing.data[0].length - 1;
  /** @param {TargetedKeyboardEvent<HTMLDivElement>} event */
  const press = (event) => {
    if (event.key === "Escape") point(undefined);
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    point(Math.min(Math.max((at ?? last) + steps[event.key], 0), last));
  };
  return (
    <div class="chart" ref={host} tabIndex={0} role="slider" aria-label={label} aria-orientation="horizontal" aria-valuemin={0} aria-valuemax={last} aria-valuenow={at ?? last} aria-valuetext={said}
      onKeyDown={press} onFocus={(e) => e.currentTarget.matches(":focus-visible") && point(at ?? last)} onBlur={() => point(undefined)} />
  );
}
