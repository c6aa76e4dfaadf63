// @ts-check
import "./shared.js";
import { useEffect, useState } from "preact/hooks";
import { ask, session } from "./api.js";
import { chance, percent, rounded, text } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Empty, Fault, Loading, Num } from "./parts.jsx";
import { follow, to } from "./route.js";
import { why } from "./words.js";

/** @import { TargetedEvent } from "preact" */
/** @import { Problem } from "./api.js" */
/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { CurvePoint, Go, Programme, ProgrammeItem } from "./types.d.ts" */

/** Curve draws what was shipped so far: as expected with its interval, and as observed.
 * @param {{ curve: CurvePoint[], unit: string, asOf: string | null }} props */
function Curve({ curve, unit, asOf }) {
  if (curve.length < 2) return null;
  const width = 720, height = 220, left = 70, bottom = 24;
  const days = curve.map((p) => Date.parse(p.date)), first = days[0], last = Math.max(days[days.length - 1] + 864e5, Date.parse(asOf ?? "") || 0);
  const all = curve.flatMap((p) => [p.observed, ...p.interval, 0]), low = Math.min(...all), high = Math.max(...all);
  /** @param {number} day */
  const x = (day) => left + (day - first) / (last - first) * (width - left);
  /** @param {number} value */
  const y = (value) => 8 + (high - value) / (high - low || 1) * (height - bottom - 8);
  /** steps returns the corners of a line that changes on each day.
   * @param {(p: CurvePoint) => number} of */
  const steps = (of) => curve.flatMap((p, i) => [[x(days[i]), y(of(p))], [x(days[i + 1] ?? last), y(of(p))]]);
  /** @param {number[][]} points */
  const line = (points) => points.map(([a, b]) => a.toFixed(1) + "," + b.toFixed(1)).join(" ");
  const band = [...steps((p) => p.interval[0]), ...steps((p) => p.interval[1]).reverse()];
  return (
    <figure class="curve">
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Worth of what was shipped, ${unit}`}>
        {[low, 0, high].map((v, i) => (i === 1 || v !== 0) && <g key={i}><line class="grid" x1={left} x2={width} y1={y(v)} y2={y(v)} /><text x={left - 6} y={y(v) + 4} text-anchor="end">{rounded(v)}</text></g>)}
        <polygon class="band" points={line(band)} />
        <polyline class="expected" points={line(steps((p) => p.expected))} />
        <polyline class="observed" points={line(steps((p) => p.observed))} />
        <text x={left} y={height - 4}>{curve[0].date}</text><text x={width} y={height - 4} text-anchor="end">{new Date(last).toISOString().slice(0, 10)}</text>
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
  /** @param {string} name @returns {(e: TargetedEvent<HTMLInputElement>) => void} */
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
          <p class="choices"><label>From <input type="date" value={route.get("from") ?? ""} onChange={set("from")} /></label> <label>To <input type="date" value={route.get("to") ?? ""} onChange={set("to")} /></label></p>
          <Curve curve={body.curve} unit={unit ?? ""} asOf={body.asOf} />
        </section>
        {(body.advice?.plans.length ?? 0) > 0 && <section aria-labelledby="next">
          <h2 id="next">What to test next</h2>
          {body.advice?.plans.map((p) => <p key={p.weeks}>In {p.weeks} weeks, <b><Num value={p.winRate.observed}>{percent(p.winRate.observed, 0)}</Num></b> of ideas win, <b><Num value={p.winRate.expected}>{percent(p.winRate.expected, 0)}</Num></b> truly.</p>)}
          <p class="quiet">At the present pace. The others win by chance: they are no better than control. <a {...follow(go, to([["websiteId", website], ["view", "plan"]]))}>Plan an experiment</a></p>
        </section>}
        <section aria-labelledby="all">
          <h2 id="all">Variations</h2>
          {body.items.length === 0 ? <Empty>No campaign is decided on this goal.</Empty> : <div class="scroll"><table class="programme" role="table">
            <thead><tr role="row">{["Campaign", "Variation", "Outcome", "Date", "Expected a month", "90 % interval", "Observed", "Chance"].map((t) => <th key={t} scope="col">{t}</th>)}</tr></thead>
            <tbody>{body.items.map((item) => {
              const value = item.expected?.valuePerMonth ?? item.expected?.perMonth, observed = item.observed?.valuePerMonth ?? item.observed?.perMonth;
              return (
                <tr key={[item.campaignId, item.widgetId, item.experimentId, item.variationId].join(" ")} role="row">
                  <td><a {...follow(go, to(item.campaignId ? [["campaign", String(item.campaignId)]] : [["widget", String(item.widgetId)], ["experiment", String(item.experimentId)]]))}>{item.campaign}</a></td>
                  <td>{item.name}</td><td><Outcome item={item} again={again} /></td><td class="at">{item.outcome.date}</td>
                  {value ? <><td class="number"><b><Num value={value.value}>{rounded(value.value)}</Num></b> <small>{item.of === "tested" ? "of the tested" : `of all, ${item.allocation}\u00a0% tested`}</small></td><td class="number">{rounded(value.interval[0])} to {rounded(value.interval[1])}</td><td class="number quiet">{rounded(observed)}</td><td class="number">{chance(item.chance)}</td></>
                    : <td colSpan={4} class="quiet">{why(item.reason)}</td>}
                </tr>
              );
            })}</tbody>
          </table></div>}
          <p class="quiet">{body.campaigns.pooled} campaigns say how large effects are here. Left out: {body.campaigns.excludedByData} too early, too small or not trustworthy, {body.campaigns.excludedByHand} by hand. Effects are taken to last and to add up.</p>
        </section>
      </>}
    </>
  );
}
