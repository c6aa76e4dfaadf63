// @ts-check
import "./shared.js";
import { useEffect, useState } from "preact/hooks";
import { ask, session } from "./api.js";
import { chance, percent, rounded, text } from "./format.js";
import { useAnswer } from "./hooks.js";
import { DataTable, Empty, Fault, Loading, Num } from "./parts.jsx";
import { follow, to } from "./route.js";
import { Cell } from "./table.jsx";
import { why } from "./words.js";

/** @import { TargetedEvent } from "preact" */
/** @import { Problem } from "./api.js" */
/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { CurvePoint, Go, Programme, ProgrammeItem } from "./types.d.ts" */

/** Curve draws what was shipped so far: as expected with its interval, and as observed.
 * @param {{ curve: CurvePoint[], items: ProgrammeItem[], unit: string, asOf: string | null }} props */
function Curve({ curve, items, unit, asOf }) {
  if (curve.length < 2) return null;
  const width = 1240, height = 260, left = 70, bottom = 24;
  const days = curve.map((p) => Date.parse(p.date)), first = days[0], last = Math.max(days[days.length - 1] + 864e5, Date.parse(asOf ?? "") || 0);
  const all = curve.flatMap((p) => [p.observed, ...p.interval, 0]), low = Math.min(...all), high = Math.max(...all);
  /** @param {number} day */
  const x = (day) => left + (day - first) / (last - first) * (width - left);
  /** @param {number} value */
  const y = (value) => 8 + (high - value) / (high - low || 1) * (height - bottom - 8);
  /** names returns what was shipped on a day. @param {string} date */
  const names = (date) => date + ": " + items.filter(({ shipped, outcome }) => shipped && outcome.date === date).map(({ campaign, name }) => `${campaign}, ${name}`).join("; ");
  let free = 0; // where the next name may begin
  const labels = curve.flatMap((p, i) => {
    const at = x(days[i]), said = items.filter(({ shipped, outcome }) => shipped && outcome.date === p.date).map(({ campaign }) => campaign).join(", ");
    if (!said || at < free || at + 7 * said.length > width) return [];
    free = at + 7 * said.length + 10;
    return [{ at, below: y(p.expected) + 16, said }];
  });
  /** steps returns the corners of a line that changes on each day.
   * @param {(p: CurvePoint) => number} of */
  const steps = (of) => curve.flatMap((p, i) => [[x(days[i]), y(of(p))], [x(days[i + 1] ?? last), y(of(p))]]);
  /** @param {number[][]} points */
  const line = (points) => points.map(([a, b]) => a.toFixed(1) + "," + b.toFixed(1)).join(" ");
  const band = [...steps((p) => p.interval[0]), ...steps((p) => p.interval[1]).reverse()];
  return (
    <figure class="curve" tabIndex={0} aria-label="What was shipped is worth">
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Worth of what was shipped, ${unit}`}>
        {[low, 0, high].map((v, i) => (i === 1 || v !== 0) && <g key={i}><line class="grid" x1={left} x2={width} y1={y(v)} y2={y(v)} /><text x={left - 6} y={y(v) + 4} text-anchor="end">{rounded(v)}</text></g>)}
        <polygon class="band" points={line(band)} />
        <polyline class="expected" points={line(steps((p) => p.expected))} />
        <polyline class="observed" points={line(steps((p) => p.observed))} />
        {[0, 1, 2, 3, 4].map((i) => <text key={i} x={left + i / 4 * (width - left)} y={height - 4} text-anchor={i === 0 ? "start" : i === 4 ? "end" : "middle"}>{new Date(first + i / 4 * (last - first)).toISOString().slice(0, 10)}</text>)}
        {labels.map(({ at, below, said }) => <text key={said} x={at + 6} y={below}>{said}</text>)}
        {curve.map((p, i) => <circle key={p.date} class="expected" cx={x(days[i])} cy={y(p.expected)} r="4"><title>{names(p.date)}</title></circle>)}
      </svg>
      <figcaption class="quiet">Worth of everything shipped so far, {unit}: expected with its 90{"\u00a0"}% interval, and dotted as it was observed.</figcaption>
    </figure>
  );
}

/** Outcome shows what was done after a campaign. Who may write can change it, and must say why a campaign is excluded.
 * @param {{ item: ProgrammeItem, again: () => unknown }} props */
function Outcome({ item, again }) {
  const [error, setError] = useState(/** @type {Problem | undefined} */ (undefined));
  const [excluding, setExcluding] = useState(false);
  const { outcome } = item, shown = outcome.outcome === "shipped" && !item.shipped ? "dropped" : outcome.outcome;
  const place = item.campaignId ? `/v1/campaigns/${item.campaignId}/outcome` : `/v1/widgets/${item.widgetId}/experiments/${item.experimentId}/outcome`;
  const of = `${item.campaign}, ${item.name}`, note = outcome.note && <small class="quiet">{outcome.note}</small>;
  /** @param {{ outcome: string, variationId?: number, note?: string } | undefined} body undefined: by the looks */
  const put = async (body) => {
    try {
      await ask(place, { method: body ? "PUT" : "DELETE", body });
      setError(undefined);
      setExcluding(false);
    } catch (refused) { setError(/** @type {Problem} */ (refused)); }
    again();
  };
  /** @param {TargetedEvent<HTMLSelectElement>} event */
  const change = (event) => {
    const chosen = event.currentTarget.value;
    setExcluding(chosen === "excluded");
    if (chosen !== "excluded") put(chosen === "default" ? undefined : { outcome: chosen, ...(chosen === "shipped" && { variationId: item.variationId }) });
  };
  /** @param {TargetedEvent<HTMLFormElement, SubmitEvent>} event */
  const exclude = (event) => {
    event.preventDefault();
    put({ outcome: "excluded", note: String(new FormData(event.currentTarget).get("note")) });
  };
  if (!session.mayWrite) return <>{shown} {note}</>;
  return (
    <>
      <select value={excluding ? "excluded" : outcome.declared ? shown : "default"} onChange={change} aria-label={`Outcome of ${of}`}>
        <option value="default">{outcome.declared ? "by the looks" : shown}</option>
        {["shipped", "dropped", "excluded"].map((o) => <option key={o} value={o}>{o}</option>)}
      </select>
      {excluding ? <form class="exclude" onSubmit={exclude}>
        <input name="note" required maxLength={2048} placeholder="Why? It is an A/A test …" aria-label={`Why ${of} is excluded`} />
        <button type="submit">Exclude</button> <button type="button" onClick={() => setExcluding(false)}>Cancel</button>
      </form> : note}
      {error && <Fault error={error} />}
    </>
  );
}

/** periods are the days from which what was shipped counts. @type {[string, string][]} */
const periods = [["", "all time"], ["365", "the last 12 months"], ["182", "the last 6 months"], ["91", "the last 3 months"]];

/** daysAgo returns the day (UTC) some days ago. @param {string} days */
const daysAgo = (days) => (days ? new Date(Date.now() - Number(days) * 864e5).toISOString().slice(0, 10) : "");

/** Again lists variations that were dropped, or did not win, and are probably better than control.
 * @param {{ items: ProgrammeItem[], go: Go }} props */
function Again({ items, go }) {
  const worthy = items.filter(({ chance: p, outcome }) => outcome.outcome === "dropped" && p !== null && p >= 0.9);
  if (worthy.length === 0) return null;
  return (
    <section aria-labelledby="again">
      <h2 id="again">Worth testing again</h2>
      <ul>{worthy.map((item) => <li key={[item.campaignId, item.experimentId, item.variationId].join(" ")}><a {...follow(go, placeOf(item))}>{item.campaign}</a>, {item.name}: better than control with a chance of {chance(item.chance)}{item.expected?.valuePerMonth && <>, expected to be worth <b>{rounded(item.expected.valuePerMonth.value)}</b> a month</>}.</li>)}</ul>
      <p class="quiet">Both are right: the looks did not prove a win, because they ask for proof whatever other campaigns found, and the chance counts what such campaigns usually find.</p>
    </section>
  );
}

/** placeOf returns the address of the campaign or experiment of an item. @param {ProgrammeItem} item */
const placeOf = ({ campaignId, widgetId, experimentId }) => to(campaignId ? [["campaign", String(campaignId)]] : [["widget", String(widgetId)], ["experiment", String(experimentId)]]);

/** Programme shows what the shipped variations of a website are worth together, and how
 * much one can expect of the next.
 * @param {{ route: Route, go: Go }} props */
export function ProgrammePage({ route, go }) {
  const website = route.get("websiteId") ?? "";
  const asked = route.pairs.filter(([n]) => ["goal", "metric", "from", "to"].includes(n));
  const path = `/v1/websites/${encodeURIComponent(website)}/worth` + to(asked).slice(1);
  /** @type {Answer<Programme>} */
  const { body, loading, error, again } = useAnswer(website && path, { every: 60000 });
  useEffect(() => { document.title = "Programme · Lifthouse"; }, []);
  const known = periods.some(([days]) => daysAgo(days) === (route.get("from") ?? ""));
  /** @param {string} name @returns {(e: TargetedEvent<HTMLSelectElement>) => void} */
  const set = (name) => (e) => go(route.with(name, e.currentTarget.value), { replace: true });
  const unit = body && (body.total.valuePerMonth ? (body.currency ?? "") + " of value a month" : "a month") + (body.total.of === "tested" ? ", for the visitors like those in the tests" : "");
  return (
    <>
      <p><a {...follow(go, to([["websiteId", website]]))}>← Overview</a></p>
      <div class="title"><h1>Programme</h1>{body?.goalName && <span class="quiet">campaigns decided on {body.goalName}</span>}</div>
      {error && <Fault error={error} again={again} />}
      {!body && loading && <Loading what="programme" />}
      {body && <>
        <div class="conclusion plain">{body.sentences.map((said, i) => <p key={said} class={i === 0 ? "answer-text" : i === 1 ? "" : "quiet"}>{text(said)}</p>)}</div>
        <section aria-labelledby="shipped">
          <h2 id="shipped">What was shipped</h2>
          <p class="choices"><label>Shipped in <select name="period" value={route.get("from") ?? ""} onChange={set("from")}>
            {!known && <option value={route.get("from")}>since {route.get("from")}</option>}
            {periods.map(([days, said]) => <option key={days} value={daysAgo(days)}>{said}</option>)}
          </select></label></p>
          <Curve curve={body.curve} items={body.items} unit={unit ?? ""} asOf={body.asOf} />
        </section>
        {(body.advice?.plans.length ?? 0) > 0 && <section aria-labelledby="next">
          <h2 id="next">What to test next</h2>
          <DataTable label="Lengths" heads={["Weeks", "Ideas that win", "Truly better"]}>{body.advice?.plans.map((p) => <tr key={p.weeks}><th scope="row">{p.weeks}</th><td><Num value={p.winRate.observed}>{percent(p.winRate.observed, 0)}</Num></td><td><Num value={p.winRate.expected}>{percent(p.winRate.expected, 0)}</Num></td></tr>)}</DataTable>
          <p class="quiet">At the present pace. The others win by chance: they are no better than control. <a {...follow(go, to([["websiteId", website], ["view", "plan"]]))}>Plan an experiment</a></p>
        </section>}
        <Again items={body.items} go={go} />
        <section aria-labelledby="all">
          <h2 id="all">Variations</h2>
          {body.items.length === 0 ? <Empty>No campaign is decided on this goal.</Empty> : <table class="programme cards" role="table">
            <thead><tr role="row">{["Campaign", "Expected a month", "90 % interval", "Observed", "Chance", "Outcome", "Date"].map((t, i) => <th key={t} role="columnheader" scope="col" class={i > 0 && i < 5 ? "number" : undefined}>{t}</th>)}</tr></thead>
            <tbody>{body.items.map((item) => {
              const value = item.expected?.valuePerMonth ?? item.expected?.perMonth, observed = item.observed?.valuePerMonth ?? item.observed?.perMonth;
              return (
                <tr key={[item.campaignId, item.widgetId, item.experimentId, item.variationId].join(" ")} role="row">
                  <th role="rowheader" scope="row"><a {...follow(go, placeOf(item))}>{item.campaign}</a><small>{item.name}</small></th>
                  {value ? <><Cell label="Expected a month" class="number"><b><Num value={value.value}>{rounded(value.value)}</Num></b> <small>{item.of === "tested" ? "of the tested" : `of all, ${item.allocation}\u00a0% tested`}</small></Cell><Cell label="90 % interval" class="number">{rounded(value.interval[0])} to {rounded(value.interval[1])}</Cell><Cell label="Observed" class="number quiet">{rounded(observed)}</Cell><Cell label="Chance" class="number">{chance(item.chance)}</Cell></>
                    : <td role="cell" colSpan={4} class="quiet">{why(item.reason)}</td>}
                  <Cell label="Outcome"><Outcome item={item} again={again} /></Cell><Cell label="Date" class="at">{item.outcome.date}</Cell>
                </tr>
              );
            })}</tbody>
          </table>}
          <p class="quiet">{body.campaigns.pooled} campaigns say how large effects are here. Left out: {body.campaigns.excludedByData} too early, too small or not trustworthy, {body.campaigns.excludedByHand} by hand. Effects are taken to last and to add up.</p>
        </section>
      </>}
    </>
  );
}
