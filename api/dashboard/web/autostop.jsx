// @ts-check
import { useState } from "preact/hooks";
import { Problem, ask, session } from "./api.js";
import { Fault } from "./parts.jsx";

/** @import { Catalogue, Item } from "./types.d.ts" */

/** @type {Record<string, string>} */
const choices = { "": "off", rollBack: "at roll back", invalid: "at invalid", both: "at roll back or invalid" };

/** setAutoStop changes one campaign of the catalogue, which has no ids of campaigns with keys. If another change is
 * faster, it starts again.
 * @param {Item} item @param {string | undefined} website @param {string} autoStop
 * @returns {Promise<unknown>} */
async function setAutoStop({ id, key }, website, autoStop) {
  for (;;) {
    const { body, etag } = await ask("/catalogue");
    const campaigns = /** @type {Catalogue} */ (body).accounts.flatMap((a) => a.websites ?? []).filter((w) => !website || String(w.id) === website).flatMap((w) => w.campaigns ?? []);
    const found = campaigns.filter((c) => (key ? c.key === key : c.id === id));
    if (found.length !== 1) throw new Problem(0, { title: "Not changed", detail: `The catalogue has ${found.length} campaigns ${key ?? id}. Open the page from the list of its website.` });
    found[0].autoStop = autoStop || undefined;
    try {
      return await ask("/catalogue", { method: "PUT", body, match: etag ?? undefined });
    } catch (error) {
      if (/** @type {Problem} */ (error).status !== 412) throw error;
    }
  }
}

/** AutoStop shows at which decisions the server stops a campaign. With the scope admin, it changes them.
 * @param {{ body: Item, website?: string, done: () => unknown }} props */
export function AutoStop({ body, website, done }) {
  const [error, setError] = useState(/** @type {Problem | undefined} */ (undefined));
  const [busy, setBusy] = useState(false);
  const now = body.autoStop ?? "";
  if (!session.mayShare) return now ? <span class="quiet">Auto-stop: {choices[now]}</span> : null;
  /** @param {string} value */
  const set = (value) => {
    setBusy(true);
    setAutoStop(body, website, value).then(() => { setError(undefined); done(); }, setError).finally(() => setBusy(false));
  };
  return (
    <>
      <label class="inline">Auto-stop <select name="autoStop" value={now} disabled={busy} onChange={(e) => set(e.currentTarget.value)}>{Object.entries(choices).map(([value, text]) => <option key={value} value={value}>{text}</option>)}</select></label>
      {error && <Fault error={error} />}
    </>
  );
}
