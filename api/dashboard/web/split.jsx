// @ts-check
import { useMemo } from "preact/hooks";
import { query } from "./api.js";
import { count, percent, probability, text } from "./format.js";
import { useAnswer, useOpened } from "./hooks.js";
import { DataTable, Fault, Loading, Num } from "./parts.jsx";
import { Curves } from "./series.jsx";
import { filters } from "./words.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Line, Point, Results, SplitCause, Subject, Variation, View } from "./types.d.ts" */

/** @type {Record<string, string>} */
const attributes = { ...filters, day: "Day", channel: "Channel" };

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

/** Cause says where a mismatch comes from, with the split of the worst days and values.
 * @param {{ cause: SplitCause, variations: Variation[] }} props */
export const Cause = ({ cause, variations }) => (
  <div id="split-cause">
    <p><b>{text(cause.text)}</b></p>
    <details><summary>Show the split by day, device, browser and source</summary>
      <DataTable label="Split of the visitors, the worst first" heads={["Visitors, worst first", "p", ...variations.map((v) => v.name)]} tall>
        {cause.parts.map(({ attribute, value, visitors, observed, expected, pValue, mismatch }) => (
          <tr key={attribute + value} data-part={attribute}><th scope="row">{value}<small>{attributes[attribute]}, {count(visitors)}</small></th>
            <td><Num value={pValue}>{probability(pValue)}</Num>{mismatch && <small><b>mismatch</b></small>}</td>
            {observed.map((n, i) => <td key={variations[i].id}><Num value={n}>{percent(n / visitors)}</Num> <small>of {percent(expected[i] / sum(expected))}</small></td>)}</tr>
        ))}
      </DataTable>
    </details>
  </div>
);

/** splitOf returns the curves of the shares of the visitors so far, and the expected shares.
 * @param {Results} results @param {Point[]} points
 * @returns {View} */
function splitOf({ variations, checks }, points) {
  const expected = checks.sampleRatio?.expected ?? [], all = sum(expected);
  /** @param {Point} point @param {number} id */
  const shareOf = ({ variations: found }, id) => (found.find((v) => v.id === id)?.visitors ?? 0) / sum(found.map((v) => v.visitors));
  /** @type {Line[]} */
  const lines = variations.flatMap(({ id, name }, index) => [
    { index, name, entries: points.map((p) => ({ value: shareOf(p, id), interval: null })) },
    { index, name: name + ", expected", thin: true, entries: points.map(() => ({ value: expected[index] / all, interval: null })) },
  ]);
  return {
    name: "split", label: "Share of the visitors", cumulative: true, marks: lines.flatMap((l) => l.entries.map((e) => e?.value ?? 0)), beams: [], lines,
    caption: "Share of the visitors so far, without multi-exposed ones; thin lines are the expected shares", write: (x) => percent(x, 2), span: () => "", tick: (x) => percent(x, 1),
  };
}

/** Drawn requests the series of the chart over time.
 * @param {{ results: Results, subject: Subject, route: Route }} props */
function Drawn({ results, subject, route }) {
  /** @type {Answer<Results>} */
  const { body, error, again } = useAnswer(subject.path + "/results" + query([...route.asked.filter(([n]) => n !== "dimension"), ["interval", route.get("interval") || "day"]]), { every: 30000 });
  const points = useMemo(() => body?.series?.filter((p) => p.variations.some((v) => v.visitors > 0)) ?? [], [body]);
  const view = useMemo(() => splitOf(results, points), [points]);
  if (error) return <Fault error={error} again={again} />;
  if (!body) return <Loading what="the chart" />;
  return points.length > 1 ? <Curves results={body} points={points} view={view} /> : <p>A chart needs at least two days.</p>;
}

/** SplitOverTime shows the shares of the visitors so far beside the expected ones.
 * @param {{ results: Results, subject: Subject, route: Route }} props */
export function SplitOverTime(props) {
  const [opened, onToggle] = useOpened();
  return <details id="split-over-time" onToggle={onToggle}><summary>Show the split over time</summary>{opened && <Drawn {...props} />}</details>;
}
