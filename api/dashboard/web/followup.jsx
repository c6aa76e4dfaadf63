// @ts-check
import "./shared.js";
import { dayName, lift, liftSpan, metric } from "./format.js";
import { DataTable, Num } from "./parts.jsx";
import { metrics, why } from "./words.js";

/** @import { Results } from "./types.d.ts" */
/** @typedef {NonNullable<Results["followUp"]>[number]} Reading */

/** Rows are those of a reading: one for each variation but control, or the day on which it is due.
 * @param {{ reading: Reading }} props */
function Rows({ reading }) {
  const { window: within, metric: name, variations, publishedAt, reason } = reading, days = within.replace("d", " days");
  if (!variations) return <tr><th scope="row">{days}</th><td colSpan={3} class="quiet">{publishedAt ? <>due on <span class="at">{publishedAt.slice(0, 10)}</span></> : reason === "TOO_EARLY" ? "the campaign ended before its first look" : "due when the last look is known"}</td></tr>;
  const [control, ...treatments] = variations;
  return treatments.map(({ id, name: variation, value, comparison: c, finding }) => (
    <tr key={id}>
      <th scope="row">{days}</th><td>{variation}</td>
      <td>{c && c.improvement.value !== null ? <><Num value={c.improvement.value}>{lift(c.improvement.value, c.improvement.interval)}</Num> <b>{finding ?? "no difference shown"}</b> <small>{liftSpan(c.improvement.interval)}</small></> : <span class="quiet">{why(c?.reason)}</span>}</td>
      <td><Num value={value}>{metric(name, value)}</Num> <small>{control.name} <Num value={control.value}>{metric(name, control.value)}</Num></small></td>
    </tr>
  ));
}

/** FollowUp shows what the visitors of the looks spent later.
 * @param {{ readings: Reading[] }} props */
export function FollowUp({ readings }) {
  const recorded = readings.flatMap((r) => r.recordedAt ?? []).at(-1);
  return (
    <section aria-labelledby="later">
      <h2 id="later">Later</h2>
      <p>{metrics[readings[0].metric]} of the visitors of the looks, by the time since their first view. Each is read once{recorded && <>, the last one on {dayName(recorded)}</>}. It is the effect of having been in a variation during the campaign: after a ship, everybody has the variation, so this is not the value of a longer time with it. It decides nothing. Together, the intervals have the error rate of the campaign.</p>
      <DataTable label="Later orders" heads={["Within", "Variation", "Lift", "Per visitor"]}>
        {readings.map((r) => <Rows key={r.window} reading={r} />)}
      </DataTable>
    </section>
  );
}
