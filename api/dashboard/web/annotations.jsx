// @ts-check
import "./shared.js";
import { useState } from "preact/hooks";
import { minute, text } from "./format.js";
import { DataTable, Num } from "./parts.jsx";
import { endsOf } from "./points.js";
import { spanOf } from "./span.js";

/** @import { Mark } from "./points.js" */
/** @import { LogEntry, Point, View } from "./types.d.ts" */

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** letterOf returns the letter of an annotation by its number: A to Z, then AA, AB …
 * @param {number} i @returns {string} */
const letterOf = (i) => (i < 26 ? "" : letterOf(Math.floor(i / 26) - 1)) + alphabet[i % 26];

/** Lettered is an annotation of a chart with its letter. Times are in seconds.
 * @typedef {{ letter: string, from: number, to: number, entry: LogEntry }} Lettered */

/** lettered returns the annotations that stand and overlap a span of time, with their letters, in order.
 * @param {LogEntry[]} annotations @param {number} low @param {number} high
 * @returns {Lettered[]} */
export function lettered(annotations, low, high) {
  return annotations.filter((a) => !a.withdrawnAt).map((entry) => {
    const from = Date.parse(entry.startsAt ?? "") / 1000;
    return { entry, from, to: entry.endsAt ? Date.parse(entry.endsAt) / 1000 : from };
  }).filter(({ from, to }) => to >= low && from <= high).sort((a, b) => a.from - b.from || a.to - b.to).map((a, i) => ({ ...a, letter: letterOf(i) }));
}

/** startOf returns the start of the first bucket in seconds.
 * @param {Point[]} points */
function startOf(points) {
  const [first, second] = endsOf(points);
  return 2 * first - second;
}

const apart = 9; // percent of the width between two letters of a line at least

/** Annotations draws lettered marks on the time axis of a chart, with a band for each span, and their texts below it. The
 * chart leaves room for its axes: 64 px on the left and 24 px on the right.
 * @param {{ annotations: LogEntry[], points: Point[], marks: Mark[], times: ArrayLike<number> }} props times: those of the chart */
export function Annotations({ annotations, points, marks, times }) {
  const [chosen, choose] = useState("");
  const low = times[0], high = Math.max(times[times.length - 1], ...marks.map((m) => m.at)), shown = lettered(annotations, startOf(points), high);
  if (shown.length === 0) return null;
  /** @param {number} at */
  const x = (at) => Math.max(0, Math.min(100 * (at - low) / (high - low), 100));
  /** @type {number[]} */
  const lanes = []; // where the last letter of each line is
  const placed = shown.map((a) => {
    const at = x((a.from + a.to) / 2), free = lanes.findIndex((last) => at - last >= apart), lane = free < 0 ? lanes.length : free;
    lanes[lane] = at;
    return { ...a, at, lane };
  });
  return (
    <>
      <div class={"annotations lanes" + Math.min(lanes.length, 4)}>
        {placed.map(({ letter, from, to }) => <span key={letter} class={"band" + (letter === chosen ? " chosen" : "")} style={{ left: x(from) + "%", width: Math.max(x(to) - x(from), 0) + "%" }} />)}
        {placed.map(({ letter, at, lane, entry }) => (
          <button key={letter} type="button" class="letter" style={{ left: at + "%", top: lane * 24 + "px" }} aria-pressed={letter === chosen} aria-label={`Annotation ${letter}: ${entry.text}`} onClick={() => choose(letter === chosen ? "" : letter)}>{letter}</button>
        ))}
      </div>
      <ol class="lettered" aria-label="Annotations">{shown.map(({ letter, entry }) => (
        <li key={letter} class={letter === chosen ? "chosen" : undefined}><b>{letter}</b> <span class="at">{spanOf(entry)}</span> <span class="said">{text(entry.text)}</span></li>
      ))}</ol>
    </>
  );
}

/** Numbers is the data table of a chart.
 * @param {{ points: Point[], view: View, annotations: LogEntry[], unit: string, when: (at: number) => string, look: (point: Point) => string | undefined }} props */
export function Numbers({ points, view, annotations, unit, when, look }) {
  const ends = endsOf(points), shown = lettered(annotations, startOf(points), ends[ends.length - 1]);
  /** @param {number} i */
  const lettersOf = (i) => {
    const begun = i === 0 ? startOf(points) : ends[i - 1];
    return shown.filter(({ from, to }) => from < ends[i] && (to > begun || from >= begun)).map((a) => a.letter).join(" ");
  };
  return (
    <DataTable label={view.label + " over time: data"} heads={[view.cumulative ? "Until" : unit[0].toUpperCase() + unit.slice(1), ...view.lines.map((l) => l.name), ...(shown.length > 0 ? ["Annotations"] : [])]} tall>
      {points.map((p, i) => (
        <tr key={p.time} data-time={p.time}><th scope="row">{view.cumulative ? minute(p.time) : when(i)}{look(p) && <small>{look(p)}</small>}</th>{view.lines.map((l) => {
          const e = l.entries[i];
          return <td key={l.name}>{e ? <><Num value={e.value}>{view.write(e.value, e.interval)}</Num> <small>{view.span(e.interval)}</small></> : "–"}</td>;
        })}{shown.length > 0 && <td>{lettersOf(i)}</td>}</tr>
      ))}
    </DataTable>
  );
}
