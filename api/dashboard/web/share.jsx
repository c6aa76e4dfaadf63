// @ts-check
import { useState } from "preact/hooks";
import { ask, session } from "./api.js";
import { day } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Copied, Dialog, Fault, leave } from "./parts.jsx";

/** @import { Problem } from "./api.js" */
/** @import { Answer } from "./hooks.js" */
/** @import { Item, ShareIds, ShareLink, Subject } from "./types.d.ts" */

/** takeLink moves the token of a share link, or of a link that signs in, from the fragment of the address to the
 * session of this tab. It reports whether there is one. */
export function takeLink() {
  const given = new URLSearchParams(location.hash.slice(1)), token = given.get("token"), share = given.get("share");
  if (!token && !share) return false;
  const address = location.pathname + location.search;
  if (share) session.open(share, { shared: { address, currency: given.get("currency") ?? undefined, timezone: given.get("timezone") ?? undefined } });
  else if (token) session.open(token);
  history.replaceState(null, "", address);
  return true;
}

/** Ended says that a share link is not valid any more.
 * @param {{ signIn: () => void }} props */
export const Ended = ({ signIn }) => (
  <main class="sign-in" id="main">
    <h1>This link has ended</h1>
    <p>It has expired or was revoked. Ask the person who shared it for a new one.</p>
    <p><button type="button" onClick={signIn}>Sign in with a token</button></p>
  </main>
);

/** idsOf returns the ids of what a page shows.
 * @param {Subject} subject @param {Item} body
 * @returns {ShareIds} */
const idsOf = (subject, body) => (subject.kind === "campaign" ? { campaignId: body.id } : { widgetId: body.id, experimentId: subject.experiment ? Number(subject.experiment) : undefined });

/** Links lists the share links of a page, which can be revoked.
 * @param {{ ids: ShareIds, answer: Answer<ShareLink[]>, fail: (error: Problem) => void }} props */
function Links({ ids, answer, fail }) {
  const found = answer.body?.filter((s) => s.campaignId === ids.campaignId && s.widgetId === ids.widgetId && s.experimentId === ids.experimentId);
  if (!found?.length) return null;
  /** @param {number} id */
  const revoke = (id) => ask("/tokens/" + id, { method: "DELETE" }).then(answer.again, fail);
  return (
    <>
      <h3>Links to this page</h3>
      <ul class="plain-list shares">{found.map((s) => (
        <li key={s.id}>created {day(s.createdAt)}, {Date.parse(s.expiresAt) < Date.now() ? "expired" : "expires"} {day(s.expiresAt)} <button type="button" aria-label={`Revoke the link of ${day(s.createdAt)}`} onClick={() => revoke(s.id)}>Revoke</button></li>
      ))}</ul>
    </>
  );
}

/** viewed returns a link with the view of this page: goal, metric, dates, filters and breakdown.
 * @param {string} url */
function viewed(url) {
  const link = new URL(url);
  link.search = location.search;
  return link.href;
}

/** @param {{ title: string, ids: ShareIds, close: () => void }} props */
function ShareDialog({ title, ids, close }) {
  const [days, setDays] = useState("30");
  const [link, setLink] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {Problem | undefined} */ (undefined));
  /** @type {Answer<ShareLink[]>} */
  const shares = useAnswer("/tokens", { every: 60000 });
  const create = () => {
    setBusy(true);
    ask("/shares", { method: "POST", body: { ...ids, expires: days + "d" } })
      .then(({ body }) => { setLink(viewed(body.url)); setError(undefined); shares.again(); }, setError)
      .finally(() => setBusy(false));
  };
  return (
    <Dialog title={`Share “${title}”`} onClose={close}>
      <p>Everybody with the link can read this page, without a token. The link opens the page as you see it, with its goal, dates and filters. It shows nothing else and changes nothing.</p>
      <p class="buttons"><label>Expires after <select name="expires" value={days} onChange={(e) => setDays(e.currentTarget.value)}>{["7", "30", "90", "365"].map((d) => <option key={d} value={d}>{d} days</option>)}</select></label>
        <button type="button" id="create-link" class="strong" disabled={busy} onClick={create}>Create link</button></p>
      {link && <><p><input id="link" aria-label="Link" readOnly size={60} value={link} onFocus={(e) => e.currentTarget.select()} /></p><p class="quiet">Copy the link now: it cannot be shown again.</p><Copied text={link} label="Copy link" /></>}
      {(error ?? shares.error) && <Fault error={/** @type {Problem} */ (error ?? shares.error)} />}
      <Links ids={ids} answer={shares} fail={setError} />
      <p class="buttons"><button type="button" onClick={leave}>Close</button></p>
    </Dialog>
  );
}

/** Share creates links to the page that need no token. It is hidden if the token may not.
 * @param {{ subject: Subject, body: Item, title: string }} props */
export function Share({ subject, body, title }) {
  const [open, setOpen] = useState(false);
  if (!session.mayShare) return null;
  return (
    <>
      <button type="button" id="share" onClick={() => setOpen(true)}>Share …</button>
      {open && <ShareDialog title={title} ids={idsOf(subject, body)} close={() => setOpen(false)} />}
    </>
  );
}
