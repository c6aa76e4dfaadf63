// @ts-check
import { query } from "./api.js";
import { described } from "./filters.jsx";
import { Axis, ForestRow, liftScale, tick } from "./forest.jsx";
import { count } from "./format.js";
import { useAnswer } from "./hooks.js";
import { measureOf } from "./measure.js";
import { Fault, Loading, Mark, Num } from "./parts.jsx";
import { Minus } from "./rows.jsx";
import { Cell, Lift, Verdict } from "./table.jsx";
import { liftIn } from "./words.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Comparison, Results, Scale, Subject } from "./types.d.ts" */

/** Row is a variation among the visitors of the segment, or among all others.
 * @param {{ who: string, segment: boolean, name: string, index: number, visitors: number, control: number, comparison: Comparison, scale: Scale, label: string }} props */
const Row = ({ who, segment, name, index, visitors, control, comparison: c, scale, label }) => (
  <tr role="row" data-segment={who}>
    <th role="rowheader" scope="row">{who}<small><Mark index={index} />{"\u00a0"}{name}</small></th>
    <Cell label="Visitors" class="n"><Num value={visitors}>{count(visitors)}</Num><small>and <Num value={control}>{count(control)}</Num></small></Cell>
    <Cell label={label} class="n two"><Lift effect={c.improvement} /></Cell>
    <Cell label="Minus others" class={segment ? "n two" : "n none"}>{segment && <Minus complement={c.complement} />}</Cell>
    <Cell label="Interval" class="wide"><ForestRow scale={scale} comparison={{ ...c, sequential: undefined }} index={index} name={`${who}, ${name}`} /></Cell>
    <Cell label="Verdict" class={segment ? "two" : "none"}>{segment && <Verdict comparison={c} />}</Cell>
  </tr>
);

/** Compare shows the visitors that the filters select beside all other visitors.
 * @param {{ subject: Subject, route: Route }} props */
export function Compare({ subject, route }) {
  const who = described(route), possible = who !== "all visitors" && !route.get("filters[zScore]") && !route.get("visitors");
  /** @type {Answer<Results>} */
  const { body, error, again } = useAnswer(possible && subject.path + "/results" + query([...route.asked.filter(([n]) => n !== "dimension"), ["complement", "true"]]), { every: 30000 });
  const rows = (body?.variations ?? []).flatMap(({ name, visitors, comparison: c }, index, [control]) => (c?.complement ? [
    { who, segment: true, name, index, visitors, control: control.visitors, comparison: c },
    { who: "all other visitors", segment: false, name, index, visitors: c.complement.visitors, control: c.complement.controlVisitors, comparison: { ...c, improvement: c.complement.improvement } },
  ] : []));
  if (!possible || (body && rows.length === 0)) return null;
  const scale = liftScale(rows.map((r) => ({ ...r.comparison, sequential: undefined })));
  return (
    <section aria-labelledby="compare">
      <div class="head"><h2><span id="compare">{who[0].toUpperCase() + who.slice(1)} against all other visitors</span>{body && <small>{measureOf(body).name}</small>}</h2></div>
      {error && <Fault error={error} again={again} />}
      {!body && !error && <Loading what="all other visitors" />}
      {body && <table class="cards scorecard" role="table" aria-labelledby="compare">
        <thead role="rowgroup"><tr role="row">{["Visitors of", "Visitors", liftIn(body), "Minus others", `Lift with ${body.significanceLevel}\u00a0% interval`, "Verdict"].map((h, i) => <th key={h} role="columnheader" scope="col" class={i > 0 && i < 4 ? "n" : undefined}>{h}</th>)}</tr></thead>
        <tbody role="rowgroup">{rows.map((r) => <Row key={r.index + r.who} {...r} scale={scale} label={liftIn(body)} />)}</tbody>
        <tfoot role="rowgroup"><tr role="row"><td role="cell" colSpan={4} /><Cell label="Scale" class="wide"><Axis scale={scale} write={tick} /></Cell><td role="cell" /></tr></tfoot>
      </table>}
    </section>
  );
}
