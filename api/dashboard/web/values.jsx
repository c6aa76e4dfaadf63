// @ts-check
import { query } from "./api.js";
import { dashes } from "./chart.jsx";
import { count, percent } from "./format.js";
import { useAnswer, useOpened } from "./hooks.js";
import { DataTable, Empty, Fault, Loading, Mark, Num, hue } from "./parts.jsx";
import { Plane, pathOf } from "./plane.jsx";
import { scaleOf } from "./scale.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Bin, Results, Subject } from "./types.d.ts" */

/** rangeOf names the values of a bin.
 * @param {Bin} bin */
const rangeOf = ({ from, to }) => (from === null ? "below 0" : from === 0 ? "0" : to === null ? `from ${count(from)}` : `${count(from)} to ${count(to)}`);

/** Drawn requests the distribution of the values of goal events. Its lines are shares of the goals of a variation, because
 * variations with other numbers of visitors have other numbers of goals.
 * @param {{ subject: Subject, route: Route }} props */
function Drawn({ subject, route }) {
  /** @type {Answer<Results>} */
  const { body, error, again } = useAnswer(subject.path + "/results" + query([...route.asked.filter(([n]) => n !== "dimension"), ["distribution", "goalValue"]]), { every: 60000 });
  if (error) return <Fault error={error} again={again} />;
  if (!body?.distribution) return <Loading what="the distribution" />;
  const { variations, distribution: { bins } } = body, every = Math.ceil(bins.length / 7);
  if (bins.length === 0) return <Empty>No goals yet.</Empty>;
  const lines = variations.map(({ goalsReached: all }, v) => bins.map(({ goals }) => (all ? goals[v] / all : 0)));
  /** @param {number[]} shares */
  const largest = (shares) => rangeOf(bins[shares.indexOf(Math.max(...shares))]);
  return (
    <figure>
      <figcaption>Share of the goals of a variation by their value. Each range is about 26{"\u00a0"}% wider than the one before it.</figcaption>
      <Plane scale={scaleOf([0, ...lines.flat()])} write={(x) => percent(x, 0)} last={bins.length - 1} marks={bins.flatMap((b, i) => (i % every === 0 ? [[i, b.from === null ? "< 0" : count(b.from)]] : []))} label={"Values of goals: most are " + variations.map((v, i) => `${largest(lines[i])} for ${v.name}`).join(", ")}>
        {(x, y) => lines.map((shares, v) => <polyline key={v} class={"line " + hue(v)} stroke-dasharray={dashes[v % 6].join(" ")} points={pathOf(shares, x, y)} />)}
      </Plane>
      <DataTable label="Values of goals: data" heads={["Value", ...variations.map((v, i) => <><Mark index={i} />{"\u00a0"}{v.name}</>)]} tall>
        {bins.map((bin, i) => <tr key={bin.from}><th scope="row">{rangeOf(bin)}</th>{variations.map((v, k) => <td key={v.id}><Num value={bin.goals[k]}>{count(bin.goals[k])}</Num> <small>{percent(lines[k][i])}</small></td>)}</tr>)}
      </DataTable>
    </figure>
  );
}

/** Values shows the distribution of order values, which is requested once it is opened.
 * @param {{ subject: Subject, route: Route }} props */
export function Values(props) {
  const [opened, onToggle] = useOpened();
  return <details id="values" onToggle={onToggle}><summary>Show the distribution of order values</summary>{opened && <Drawn {...props} />}</details>;
}
