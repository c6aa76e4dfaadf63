// @ts-check
import "./shared.js";
import { useEffect } from "preact/hooks";
import { count, day, rounded } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Fault, Loading, Num } from "./parts.jsx";
import { follow, to } from "./route.js";
import { Cell } from "./table.jsx";

/** @import { Answer } from "./hooks.js" */
/** @import { Go, Website, WebsiteStatus } from "./types.d.ts" */

/** @typedef {Website & { status: WebsiteStatus }} Listed */

/** @param {number} n @param {string} one @param {string} [many] */
const counted = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

/** Amount is a value a month with its interval.
 * @param {{ of: WebsiteStatus["atStake"], spans?: boolean }} props */
function Amount({ of, spans }) {
  if (!of) return <span class="quiet">–</span>;
  return <><b><Num value={of.expected}>{rounded(of.expected)}</Num></b> {of.currency}{spans && <small>{rounded(of.interval[0])} to {rounded(of.interval[1])}</small>}</>;
}

/** sentenceOf says what is due on all websites.
 * @param {Listed[]} websites */
function sentenceOf(websites) {
  const due = websites.filter(({ status }) => status.toDecide > 0), decisions = due.reduce((sum, { status }) => sum + status.toDecide, 0);
  if (decisions === 0) return "No decision is due.";
  return `${counted(decisions, "decision")} ${decisions === 1 ? "is" : "are"} due on ${counted(due.length, "website")}.`;
}

/** othersOf says what else needs somebody.
 * @param {Listed[]} websites */
function othersOf(websites) {
  /** @param {(status: WebsiteStatus) => number} of */
  const sum = (of) => websites.reduce((total, { status }) => total + of(status), 0);
  const failed = sum((s) => s.attention), silent = sum((s) => s.silentSources?.length ?? 0), undeclared = sum((s) => s.undeclared);
  const days = websites.flatMap(({ status }) => status.nextLooks).toSorted((a, b) => a.day.localeCompare(b.day)), next = days[0]?.day;
  return [
    failed > 0 && `${counted(failed, "check")} failed`, silent > 0 && `${counted(silent, "source")} ${silent === 1 ? "is" : "are"} silent`,
    undeclared > 0 && `${counted(undeclared, "experiment")} ${undeclared === 1 ? "is" : "are"} not declared`,
    next && `next looks: ${count(days.filter((d) => d.day === next).reduce((total, d) => total + d.count, 0))} on ${next}`,
  ].filter(Boolean).join(" · ");
}

/** byNeed orders websites by failed checks, then decisions, then silence.
 * @param {Listed} a @param {Listed} b */
const byNeed = ({ status: a }, { status: b }) => b.attention - a.attention || b.toDecide - a.toDecide || (b.silentSources?.length ?? 0) - (a.silentSources?.length ?? 0) || b.undeclared - a.undeclared;

const heads = [["Website"], ["To decide", "n"], ["At stake a month", "n"], ["Checks"], ["Sources"], ["Running", "n"], ["Shipped worth a month", "n"], ["Last decision"]];

/** Row is a website.
 * @param {{ website: Listed, go: Go }} props */
function Row({ website: { id, domain, status }, go }) {
  const { toDecide, attention, running, silentSources, undeclared, lastDecision } = status;
  return (
    <tr role="row" data-website={id}>
      <th role="rowheader" scope="row"><a {...follow(go, to([["websiteId", id]]))}>{domain}</a></th>
      <Cell label="To decide" class="n">{toDecide > 0 ? <b>{count(toDecide)}</b> : <span class="quiet">0</span>}</Cell>
      <Cell label="At stake a month" class="n"><Amount of={status.atStake} spans /></Cell>
      <Cell label="Checks">{attention > 0 ? <span class="flag">{counted(attention, "failed check")}</span> : <span class="verdict better">✓<span class="hidden"> no check has failed</span></span>}</Cell>
      <Cell label="Sources">{silentSources?.map(({ name, since }) => <small key={name}>{name} silent since <span class="at">{day(since)}</span></small>)}{undeclared > 0 && <small>{counted(undeclared, "experiment")} not declared</small>}{!silentSources?.length && undeclared === 0 && <span class="quiet">–</span>}</Cell>
      <Cell label="Running" class="n"><Num value={running}>{count(running + toDecide + attention)}</Num></Cell>
      <Cell label="Shipped worth a month" class="n"><Amount of={status.shipped} /></Cell>
      <Cell label="Last decision">{lastDecision ? <><span class="at">{day(lastDecision.at)}</span><small>{lastDecision.name}</small></> : <span class="quiet">–</span>}</Cell>
    </tr>
  );
}

/** Console is the start page of an account with several websites: what is due, at stake and silent on each.
 * @param {{ go: Go }} props */
export function Console({ go }) {
  /** @type {Answer<Listed[]>} */
  const { body, error, loading, again } = useAnswer("/v1/websites?include=status", { every: (found) => (found?.some(({ status }) => status.reason) ? 2000 : 30000) });
  useEffect(() => { document.title = "Websites · Lifthouse"; }, []);
  const others = body && othersOf(body);
  return (
    <>
      <div class="title"><h1>Websites</h1>{body && <span class="quiet">{counted(body.length, "website")}</span>}</div>
      {error && <Fault error={error} again={again} />}
      {!body && loading && <Loading what="websites" />}
      {body && <>
        <div class="conclusion plain"><p class="answer-text">{sentenceOf(body)}</p>{others && <p class="quiet">{others}</p>}</div>
        <section aria-label="Websites">
          <table class="cards console" role="table" aria-label="Websites">
            <thead role="rowgroup"><tr role="row">{heads.map(([text, place]) => <th key={text} role="columnheader" scope="col" class={place}>{text}</th>)}</tr></thead>
            <tbody role="rowgroup">{body.toSorted(byNeed).map((website) => <Row key={website.id} {...{ website, go }} />)}</tbody>
          </table>
          <p class="quiet">Sorted by what needs you: failed checks, decisions, silence. Amounts of different currencies are never added.{body.some(({ status }) => status.reason) && " Some amounts are being computed."}</p>
        </section>
      </>}
    </>
  );
}
