// @ts-check
import "./shared.js";
import { useState } from "preact/hooks";
import { ask, session } from "./api.js";
import { lastDay, minute } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Fault } from "./parts.jsx";

/** @import { TargetedSubmitEvent } from "preact" */
/** @import { Problem } from "./api.js" */
/** @import { Answer } from "./hooks.js" */
/** @import { Results } from "./types.d.ts" */
/** @import { components } from "./openapi.d.ts" */
/** @typedef {components["schemas"]["Readout"]} Readout */

/** Making is the form of a new readout, which opens it.
 * @param {{ path: string, looks: NonNullable<Results["looks"]> }} props */
function Making({ path, looks }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {Problem | undefined} */ (undefined));
  /** @param {TargetedSubmitEvent<HTMLFormElement>} event */
  const make = async (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget), look = Number(form.get("look"));
    setBusy(true);
    try {
      const { body } = await ask(path, { method: "POST", body: { ...(look && { look }), text: String(form.get("text")) } });
      location.assign("/readouts/" + body.id);
    } catch (refused) {
      setError(/** @type {Problem} */ (refused));
      setBusy(false);
    }
  };
  return (
    <form class="making" onSubmit={make}>
      <label>Comment <textarea name="text" rows={2} maxLength={4000} placeholder="Optional. Blank lines separate paragraphs." /></label>
      <label>Look <select name="look"><option value="">the one that decided, or the last</option>{looks.map(({ number, end }) => <option key={number} value={number}>{number}, {lastDay(end)}</option>)}</select></label>
      <button type="submit" disabled={busy}>Make a readout</button>
      {error && <Fault error={error} />}
    </form>
  );
}

/** Readouts lists the readouts of a campaign or an experiment, and makes one.
 * @param {{ results: Results }} props */
export function Readouts({ results: { campaignId, widgetId, experimentId, looks } }) {
  const path = campaignId ? `/v1/campaigns/${campaignId}/readouts` : `/v1/widgets/${widgetId}/experiments/${experimentId}/readouts`;
  /** @type {Answer<Readout[]>} */
  const { body, error } = useAnswer(path, { every: 60000 });
  const standing = body?.filter((r) => !r.withdrawnAt);
  return (
    <div id="readouts">
      <h3>Readouts</h3>
      <p class="quiet">A readout is a file that says what was known at a look. It never changes, and prints on A4.</p>
      {error && <Fault error={error} />}
      {standing && standing.length > 0 && <ul>{standing.map((r) => (
        <li key={r.id}><a href={"/readouts/" + r.id}>{r.look ? "Look " + r.look : "Full days"}, until {lastDay(r.endedAt)}</a>: {r.sentence} <small>{minute(r.madeAt)}, {r.madeBy ?? "the server"}</small></li>
      ))}</ul>}
      {session.mayWrite && looks && <Making {...{ path, looks }} />}
    </div>
  );
}
