// @ts-check
import { useState } from "preact/hooks";
import { count, points, pointsSpan } from "./format.js";
import { Axis, ForestRow, tick } from "./forest.jsx";
import { Help } from "./help.jsx";
import { first, reach, sorted } from "./order.js";
import { Mark, Num } from "./parts.jsx";
import { scaleOf } from "./scale.js";
import { Cell, Lift, Verdict } from "./table.jsx";
import { liftIn } from "./words.js";

/** @import { Measure } from "./measure.js" */
/** @import { Complement, Link, Order, Results, Segment } from "./types.d.ts" */

/** segmentsOf returns a row for each value and compared variation.
 * @param {Results} results
 * @returns {Segment[]} */
export function segmentsOf(results) {
  return (results.breakdown ?? []).flatMap((cell) => {
    const control = cell.variations.find((v) => v.control) ?? cell.variations[0];
    return cell.variations.flatMap((variation, index) => (variation.comparison ? [{ cell, control, variation, comparison: variation.comparison, index }] : []));
  });
}

/** @param {{ label: string, by: Order["by"], order: Order, sort?: (order: Order) => void, class?: string }} props */
function Sortable({ label, by, order, sort, class: name }) {
  const chosen = order.by === by, sign = chosen ? (order.down ? "▼" : "▲") : "↕";
  if (!sort) return <th role="columnheader" scope="col" class={name}>{label}</th>;
  return (
    <th role="columnheader" scope="col" class={name} aria-sort={chosen ? (order.down ? "descending" : "ascending") : "none"}>
      <button type="button" class="sort" onClick={() => sort({ by, down: chosen ? !order.down : first[by] })}>{label} <span aria-hidden="true">{sign}</span></button>
    </th>
  );
}

/** Minus is the lift of a segment minus that of all other visitors.
 * @param {{ complement: Complement | undefined }} props */
export function Minus({ complement }) {
  const { value, interval } = complement?.improvementDifference ?? { value: null, interval: null };
  return <><Num value={value}>{points(value, interval)}</Num> {interval && <small>{pointsSpan(interval)}</small>}</>;
}

/** Row shows a variation among the visitors with one value, or one part of a metric. Without parts, its value is the
 * variation.
 * @param {{ segment: Segment, measure: Measure, lift: string, several: boolean, whole: boolean, minus: boolean, scale: ReturnType<typeof scaleOf>, link?: Link }} props */
function Row({ segment: { cell, control, variation: v, comparison: c, index }, measure, lift, several, whole, minus, scale, link }) {
  const was = measure.of(control), is = measure.of(v), head = cell.label ?? cell.value;
  return (
    <tr role="row" data-value={cell.value} data-variation-id={v.id}>
      <th role="rowheader" scope="row">{whole && <><Mark index={index} />{"\u00a0"}</>}{head} {link && <a class="narrow" {...link}>show only this</a>}{cell.label && cell.label !== cell.value && <small>{cell.value}</small>}{several && <small><Mark index={index} />{"\u00a0"}{v.name}</small>}</th>
      <Cell label="Visitors" class="n"><Num value={v.visitors}>{count(v.visitors)}</Num><small>and <Num value={control.visitors}>{count(control.visitors)}</Num></small></Cell>
      <Cell label={control.name} class="n"><Num value={was.value}>{measure.write(was.value, was.interval)}</Num></Cell>
      <Cell label={several ? "Variation" : v.name} class="n"><Num value={is.value}>{measure.write(is.value, is.interval)}</Num></Cell>
      <Cell label={lift} class="n two"><Lift effect={c.improvement} /></Cell>
      <Cell label="Interval" class="wide"><ForestRow scale={scale} comparison={{ ...c, sequential: undefined }} index={index} name={`${head}, ${v.name}`} /></Cell>
      {minus && <Cell label="Minus others" class="n"><Minus complement={c.complement} /></Cell>}
      <Cell label="Verdict" class="two"><Verdict comparison={c} /></Cell>
    </tr>
  );
}

/** Rows is a table of segments or parts, on a common scale of lifts. what names the first column; without it, the rows are
 * the variations. label is the id of the table's heading. A row can have a link.
 * @param {{ segments: Segment[], results: Pick<Results, "methodology" | "significanceLevel" | "variations">, measure: Measure, what?: string, label: string, linkOf?: (segment: Segment) => Link | undefined }} props */
export function Rows({ segments, results, measure, what, label, linkOf }) {
  const [order, set] = useState(/** @type {Order} */ ({ by: "visitors", down: true }));
  const [control, ...others] = results.variations, several = others.length > 1;
  const minus = segments.some((s) => s.comparison.complement), whole = what === undefined, sort = whole ? undefined : set;
  const scale = scaleOf([0, ...reach(segments.map((s) => s.comparison.improvement))], 6), lift = liftIn(results);
  return (
    <table class={"cards segments" + (minus ? "" : " parts-of") + (whole ? " whole" : "")} role="table" aria-labelledby={label}>
      <thead role="rowgroup"><tr role="row">
        <Sortable label={what ?? "Variation"} by="value" {...{ order, sort }} />
        <Sortable label="Visitors" by="visitors" class="n" {...{ order, sort }} />
        <th role="columnheader" scope="col" class="n"><span class="hidden">{measure.name}, </span>{control.name}</th>
        <th role="columnheader" scope="col" class="n"><span class="hidden">{measure.name}, </span>{several ? "Variation" : others[0]?.name}</th>
        <Sortable label={lift} by="lift" class="n" {...{ order, sort }} />
        <th role="columnheader" scope="col">with {results.significanceLevel}{"\u00a0"}% interval</th>
        {minus && <th role="columnheader" scope="col" class="n">Minus others<Help of="complement" /></th>}
        <th role="columnheader" scope="col">Verdict{minus && <Help of="verdict" />}</th>
      </tr></thead>
      <tbody role="rowgroup">
        {(whole ? segments : sorted(segments, order)).map((s) => <Row key={`${s.cell.value} ${s.variation.id}`} segment={s} {...{ measure, lift, whole, minus, scale }} several={several && !whole} link={linkOf?.(s)} />)}
      </tbody>
      <tfoot role="rowgroup"><tr role="row"><td role="cell" colSpan={5} /><Cell label="Scale" class="wide"><Axis scale={scale} write={tick} /></Cell><td role="cell" colSpan={minus ? 2 : 1} /></tr></tfoot>
    </table>
  );
}
