// @ts-check
import "./shared.js";
import { useEffect } from "preact/hooks";
import { query } from "./api.js";
import { count, percent, rounded, signedPercent, text } from "./format.js";
import { useAnswer } from "./hooks.js";
import { DataTable, Fault, Loading, Num } from "./parts.jsx";
import { follow, to } from "./route.js";
import { compareMetrics, metrics, why } from "./words.js";

/** @import { TargetedEvent } from "preact" */
/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, Goal, Item, Pairs, Plan } from "./types.d.ts" */

const never = 1 << 30;
const asked = ["goal", "metric", "traffic", "visitorsPerDay", "share", "methodology", "significanceLevel", "power", "mde"];

/** usePlan requests a plan.
 * @param {string | undefined} website @param {Pairs} pairs
 * @returns {Answer<Plan>} */
const usePlan = (website, pairs) => useAnswer(website && `/v1/websites/${encodeURIComponent(website)}/plan` + query(pairs), { every: 60000 });

/** Lengths is a row for each length of an experiment.
 * @param {{ plan: Plan }} props */
function Lengths({ plan }) {
  const { weeks, best, currency, worthReason } = plan;
  return (
    <>
      <DataTable label="Lengths" heads={["Weeks", `Lift found in ${plan.rules.power}\u00a0%`, `A week adds${currency ? ", " + currency + " a month" : ""}`, "Ideas that win", "Visitors"]}>
        {weeks.map((w) => (
          <tr key={w.weeks} class={w.weeks === best ? "best" : undefined}>
            <th scope="row">{w.weeks}{w.weeks === best && <small> adds most</small>}</th>
            <td><Num value={w.mde}>{w.mde === null ? "none" : signedPercent(w.mde, 1)}</Num></td>
            <td><Num value={w.worthPerWeek}>{rounded(w.worthPerWeek)}</Num></td>
            <td><Num value={w.winRate.observed}>{percent(w.winRate.observed, 0)}</Num> <small><Num value={w.winRate.expected}>{percent(w.winRate.expected, 0)}</Num> truly</small></td>
            <td><Num value={w.visitors}>{count(w.visitors)}</Num></td>
          </tr>
        ))}
      </DataTable>
      <p class="quiet">A week adds the value a month that is shipped for each week of testing, if what wins is shipped and the rest is dropped. What is lost on visitors who see worse variations during the test is not in it.{worthReason && ` It is not known: ${why(worthReason)}.`}</p>
    </>
  );
}

/** Field is a number that the plan asks for.
 * @param {{ label: string, name: string, hint?: string, min: number, max: number, route: Route, go: Go }} props */
const Field = ({ label, name, hint, min, max, route, go }) => (
  <label>{label} <input type="number" name={name} step={name === "mde" ? "any" : 1} min={min} max={max} placeholder={hint} value={route.get(name) ?? ""}
    onChange={(e) => go(route.with(name, e.currentTarget.value), { replace: true })} /></label>
);

/** Settings are the rules of the experiment.
 * @param {{ goals: Goal[], plan?: Plan, route: Route, go: Go }} props */
function Settings({ goals, plan, route, go }) {
  /** @param {string} name @param {string} label @param {[string, string][]} options */
  const choice = (name, label, options) => (
    <label>{label} <select name={name} value={route.get(name) ?? options[0][0]} onChange={(/** @type {TargetedEvent<HTMLSelectElement>} */ e) => go(route.with(name, e.currentTarget.value), { replace: true })}>
      {options.map(([value, said]) => <option key={value} value={value}>{said}</option>)}
    </select></label>
  );
  const shares = route.pairs.flatMap(([n, v]) => (n === "share" ? [v] : [])).join(", ");
  return (
    <div class="choices">
      {choice("goal", "Goal", [["", plan ? plan.goal?.name ?? plan.metric : "that of most campaigns"], ...goals.filter((g) => g.id !== plan?.goal?.id || route.get("goal")).map((g) => /** @type {[string, string]} */ ([String(g.id), g.name]))])}
      {choice("metric", "Metric", compareMetrics.campaign.map((m, i) => [i ? m : "", metrics[m]]))}
      <Field label="Minimum effect, %" name="mde" hint="20" min={1} max={100} {...{ route, go }} />
      <Field label="Traffic, %" name="traffic" min={1} max={100} {...{ route, go }} />
      <Field label="Visitors a day" name="visitorsPerDay" min={1} max={1e9} {...{ route, go }} />
      <label>Shares, % <input name="share" placeholder="50, 50" value={shares} onChange={(e) => go(route.with("share", ...e.currentTarget.value.split(/[\s,;]+/)), { replace: true })} /></label>
      {choice("methodology", "Methodology", [["", "frequentist"], ["bayesian", "Bayesian"]])}
      {choice("significanceLevel", "Significance level", [["", "95\u00a0%"], ["90", "90\u00a0%"], ["80", "80\u00a0%"]])}
      <Field label="Power, %" name="power" hint="80" min={60} max={99} {...{ route, go }} />
    </div>
  );
}

/** PlanPage shows what experiments of several lengths on a website would find.
 * @param {{ route: Route, go: Go }} props */
export function PlanPage({ route, go }) {
  const website = route.get("websiteId") ?? "";
  const { body, loading, error, again } = usePlan(website, route.pairs.filter(([n]) => asked.includes(n)));
  /** @type {Answer<Goal[]>} */
  const goals = useAnswer(website && "/v1/goals" + query([["websiteId", website], ["limit", "500"]]), { every: never });
  useEffect(() => { document.title = "Plan · Lifthouse"; }, []);
  return (
    <>
      <p><a {...follow(go, to([["websiteId", website]]))}>← Overview</a></p>
      <div class="title"><h1>Plan an experiment</h1></div>
      <section class="plan" aria-label="Settings"><Settings goals={goals.body ?? []} plan={body} {...{ route, go }} /></section>
      {error && <Fault error={error} again={again} />}
      {!body && loading && <Loading what="plan" />}
      {body && !error && <div aria-busy={loading}>
        <div class="conclusion plain">{body.sentences.map((said, i) => <p key={said} class={i === 0 ? "quiet" : i === 1 ? "answer-text" : ""}>{text(said)}</p>)}</div>
        {body.weeks.length > 0 && <section class="plan" aria-labelledby="lengths"><h2 id="lengths">How long</h2><Lengths plan={body} /></section>}
      </div>}
    </>
  );
}

/** Planned says what the plan of a campaign that has not started finds, and what each prior costs.
 * @param {{ campaign: Item, website: number, go: Go }} props */
export function Planned({ campaign, website, go }) {
  const { body, error } = usePlan(String(website), [["campaign", String(campaign.id)]]);
  if (error || !body) return null;
  const { priors = [] } = body;
  return (
    <section aria-labelledby="planned">
      <h2 id="planned">Plan</h2>
      <p>{text(body.sentences.slice(0, 2).join(" "))}</p>
      {priors.length > 0 && <>
        <p>What each prior costs:</p>
        <ul>{priors.map((p) => <li key={p.text}>{text(p.text)}</li>)}</ul>
      </>}
      <p><a {...follow(go, to([["websiteId", String(website)], ["view", "plan"]]))}>Plan another experiment</a></p>
    </section>
  );
}
