// @ts-check
import "./shared.js";
import { useState } from "preact/hooks";
import { ask, query } from "./api.js";
import { count, number } from "./format.js";
import { Axis, ForestRow, liftScale, tick } from "./forest.jsx";
import { useAnswer } from "./hooks.js";
import { Empty, Fault, Loading, Mark, Num } from "./parts.jsx";
import { Cell, Lift, Verdict } from "./table.jsx";
import { liftIn } from "./words.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Comparison, RequestOptions, Results, SplitItem, Subject } from "./types.d.ts" */

/** The metrics of a product: their names, and their expressions of a goal.
 * @type {[string, (goal: string) => string][]} */
const metrics = [
  ["Buyers", (goal) => `converted(${goal})`],
  ["Quantity", (goal) => `sum(${goal}.items.quantity)`],
  ["Revenue", (goal) => `sum(${goal}.items.revenue)`],
  ["Profit", (goal) => `sum(${goal}.items.profit)`],
];

const few = 20, many = 1000; // products

/** requested requests the split of each metric by product.
 * @param {string} path @param {RequestOptions} options */
async function requested(path, { signal }) {
  const [resource, search] = path.split("?"), asked = new URLSearchParams(search), goal = asked.get("of") ?? "any";
  asked.delete("of");
  const all = await Promise.all(metrics.map(([, expression]) => ask(resource + query([...asked, ["metric", expression(goal)], ["split", "items.product"]]), { signal })));
  return { body: all.map(({ body }) => /** @type {Results} */ (body)) };
}

/** isProduct reports whether a value is a product: not the events without lines. @param {SplitItem} item */
const isProduct = ({ value }) => value !== "(none)";

/** useProducts requests the products of a goal, or if its events have no lines, those of all goals.
 * @param {string} path @param {[string, string][]} asked @param {number | undefined} goal
 * @returns {Answer<Results[]>} */
function useProducts(path, asked, goal) {
  const of = goal === undefined ? "any" : "#" + goal;
  /** @type {Answer<Results[]>} */
  const one = useAnswer(path + query([...asked, ["of", of]]), { request: requested, every: 300000 });
  const none = goal !== undefined && one.body && !one.body[0].split?.items.some(isProduct);
  /** @type {Answer<Results[]>} */
  const any = useAnswer(none && path + query([...asked, ["of", "any"]]), { request: requested, every: 300000 });
  return none ? any : one;
}

/** Row is a product and a variation. parts are those of each metric, with control's.
 * @param {{ item: SplitItem, index: number, name: string, several: boolean, parts: { is?: SplitItem["variations"][number], was?: SplitItem["variations"][number] }[], comparison: Comparison, scale: ReturnType<typeof liftScale>, lift: string }} props */
function Row({ item: { value, label }, index, name, several, parts, comparison: c, scale, lift }) {
  /** @param {number | null | undefined} x @param {number} i */
  const write = (x, i) => <Num value={x}>{x === null || x === undefined ? "–" : i < 2 ? count(x) : number(x, 2)}</Num>;
  /** @param {SplitItem["variations"][number] | undefined} part @param {number} i */
  const total = (part, i) => write(i === 0 ? part?.metric.visitors : part?.metric.numerator, i);
  return (
    <tr role="row" data-product={value}>
      <th role="rowheader" scope="row">{label ?? value}{label && label !== value && <small>{value}</small>}{several && <small><Mark index={index} />{"\u00a0"}{name}</small>}</th>
      {parts.map(({ is, was }, i) => <Cell key={metrics[i][0]} label={metrics[i][0]} class="n">{total(is, i)}<small>and {total(was, i)}</small></Cell>)}
      <Cell label={lift} class="n two"><Lift effect={c.improvement} /></Cell>
      <Cell label="Interval" class="wide"><ForestRow scale={scale} comparison={{ ...c, sequential: undefined }} index={index} name={`${label ?? value}, ${name}`} /></Cell>
      <Cell label="Verdict"><Verdict comparison={c} /></Cell>
    </tr>
  );
}

/** Table is the products, those with the most buyers first, and all others last. of is the metric of the lifts.
 * @param {{ all: Results[], of: number, variations: Results["variations"] }} props */
function Table({ all, of, variations }) {
  const [results] = all, [control, ...others] = variations, several = others.length > 1, lift = `${liftIn(results)} of ${metrics[of][0].toLowerCase()}`;
  const byValue = all.map(({ split }) => new Map(split?.items.map((item) => [item.value, item])));
  const items = results.split?.items.filter(isProduct) ?? [];
  const rows = items.flatMap((item) => others.flatMap((v, i) => {
    const comparison = byValue[of].get(item.value)?.variations[i + 1].comparison;
    const parts = byValue.map((found) => ({ is: found.get(item.value)?.variations[i + 1], was: found.get(item.value)?.variations[0] }));
    return comparison ? [{ item, index: i + 1, name: v.name, parts, comparison, key: item.value + " " + v.id }] : [];
  }));
  const scale = liftScale(rows.filter(({ item }) => item.value !== "(other)").map(({ comparison }) => comparison));
  return (
    <table class="cards products" role="table" aria-labelledby="products">
      <thead role="rowgroup"><tr role="row">{["Product", ...metrics.map(([name]) => name), lift, `with ${results.significanceLevel}\u00a0% interval`, "Verdict"].map((head, i) => <th key={head} role="columnheader" scope="col" class={i > 0 && i < 6 ? "n" : undefined}>{head}</th>)}</tr></thead>
      <tbody role="rowgroup">{rows.map(({ key, ...row }) => <Row key={key} {...row} {...{ scale, several, lift }} />)}</tbody>
      <tfoot role="rowgroup"><tr role="row"><td role="cell" colSpan={6} /><Cell label="Scale" class="wide"><Axis scale={scale} write={tick} /></Cell><td role="cell" /></tr></tfoot>
      <caption class="quiet">{several ? "The totals of each variation" : `The totals of ${others[0]?.name}`}, and of {control.name}. A lift is per visitor, with all visitors of a variation.</caption>
    </table>
  );
}

/** Products is what was sold of each product, with the lift of one metric. The filters of the page apply.
 * @param {{ subject: Subject, route: Route, results: Results }} props */
export function Products({ subject, route, results }) {
  const [top, setTop] = useState(few), [of, setOf] = useState(0);
  const asked = /** @type {[string, string][]} */ ([...route.pairs.filter(([name]) => name === "websiteId"), ...route.filters.filter(([name]) => !/zScore|goalValue/.test(name)), ["top", String(top)]]);
  const { body: all, error, again } = useProducts(subject.path + "/results", asked, results.goal?.id);
  if (error) return <Fault error={error} again={again} />;
  if (!all) return <Loading what="the products" />;
  const items = all[0].split?.items ?? [];
  if (!items.some(isProduct)) return <Empty>No visitors of this view bought a product.</Empty>;
  return (
    <>
      <label class="inline">Lift of <select name="lift-of" value={of} onChange={(e) => setOf(Number(e.currentTarget.value))}>{metrics.map(([name], i) => <option key={name} value={i}>{name}</option>)}</select></label>
      <Table all={all} of={of} variations={results.variations} />
      {top < many && items.some(({ value }) => value === "(other)") && <p class="buttons"><button type="button" onClick={() => setTop(many)}>Show {count(many)} products</button></p>}
    </>
  );
}
