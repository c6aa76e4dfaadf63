// @ts-check
import { useState } from "preact/hooks";
import { minute } from "./format.js";
import { useAnswer } from "./hooks.js";
import { Dialog, Empty, leave } from "./parts.jsx";
import { follow } from "./route.js";

/** @import { Delivery, Go, Message } from "./types.d.ts" */

const slow = 30000; // milliseconds between two requests
const key = "lifthouse.seen"; // when this browser last opened the list

/** @type {Record<string, string>} */
const events = {
  "decision.changed": "Decision", "check.failed": "Check failed", "check.cleared": "Check passed again",
  "campaign.started": "Started", "campaign.stopped": "Stopped",
};

/** @type {Record<string, string>} */
const outcomes = { delivered: "delivered", retrying: "failed, will be retried", failed: "failed", requested: "will be sent again" };

/** @param {{ of: Delivery }} props */
const Outcome = ({ of }) => (
  <li class={of.outcome === "failed" || of.outcome === "retrying" ? "bad" : "quiet"}>
    {of.host}: {outcomes[of.outcome]} {minute(of.at)}{of.attempts > 1 && `, ${of.attempts} attempts`}{of.detail && of.outcome !== "requested" && `: ${of.detail}`}
  </li>
);

/** Bell shows the latest decisions, failed checks, starts and stops, and whether the webhooks received them. It is hidden
 * if the token may not read them.
 * @param {{ go: Go }} props */
export function Bell({ go }) {
  const [open, setOpen] = useState(false);
  const [seen, setSeen] = useState(localStorage.getItem(key) ?? "");
  /** @type {import("./hooks.js").Answer<Message[]>} */
  const { body, error } = useAnswer("/deliveries", { every: slow });
  if (!body || error?.status === 403) return null;
  const fresh = body.filter((m) => m.recordedAt > seen).length;
  const close = () => setOpen(false);
  const show = () => {
    const now = body[0]?.recordedAt ?? "";
    localStorage.setItem(key, now);
    setSeen(now);
    setOpen(true);
  };
  return (
    <>
      <button type="button" class="bell" onClick={show} aria-label={fresh > 0 ? `Notifications, ${fresh} new` : "Notifications"}>
        <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d="M8 1a4.5 4.5 0 0 0-4.5 4.5c0 4-1.5 5.5-1.5 5.5h12s-1.5-1.5-1.5-5.5A4.5 4.5 0 0 0 8 1zM6.5 13a1.5 1.5 0 0 0 3 0z" /></svg>
        {fresh > 0 && <span class="count">{fresh > 99 ? "99+" : fresh}</span>}
      </button>
      {open && (
        <Dialog title="Notifications" onClose={close}>
          {body.length === 0 && <Empty>No decisions, failed checks, starts or stops yet.</Empty>}
          <ul class="messages">{body.map((m) => (
            <li key={m.message}>
              <p><b>{events[m.event] ?? m.event}</b>: <a {...follow((to) => { close(); go(to); }, m.path)}>{m.data.name}</a> <span class="quiet">{minute(m.recordedAt)}</span></p>
              <p>{m.data.text}{m.data.worth && ` ${m.data.worth.text}`}</p>
              {m.deliveries.length > 0 && <ul>{m.deliveries.map((d) => <Outcome key={d.webhookId} of={d} />)}</ul>}
            </li>
          ))}</ul>
          <p class="buttons"><button type="button" onClick={leave}>Close</button></p>
        </Dialog>
      )}
    </>
  );
}
