// @ts-check
import { useState } from "preact/hooks";
import { ask, session } from "./api.js";
import { count } from "./format.js";
import { Dialog, Fault, leave } from "./parts.jsx";

/** @import { Item, Results, Subject } from "./types.d.ts" */

/** @import { TargetedMouseEvent } from "preact" */
/** @import { Problem } from "./api.js" */

/** Consequences says what a start or stop does.
 * @param {{ body: Item, scored?: Results }} props */
function Consequences({ body, scored }) {
  if (!body.active) return <p>It becomes active now for all visitors.{body.startDate && " A look needs seven full days in a row, so the next look is a week away at least."}</p>;
  const left = scored?.power?.remainingVisitors, open = scored?.decision?.status === "keepRunning";
  return (
    <>
      <p>It ends now for all visitors. Its end date becomes the current time. Its results are kept.</p>
      {open && <p><b>There is no decision yet.</b>{left ? ` ${count(left)} more visitors are required.` : ""} If you stop now, the unfinished week has no look and the question stays open.</p>}
    </>
  );
}

/** Switch starts or stops a campaign or a widget after confirmation. It is hidden if the
 * token may not.
 * @param {{ subject: Subject, body: Item, scored?: Results, done: () => unknown }} props */
export function Switch({ subject, body, scored, done }) {
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState(/** @type {Problem | undefined} */ (undefined));
  const [busy, setBusy] = useState(false);
  const verb = body.active ? "stop" : "start";
  const close = () => { setAsking(false); setError(undefined); };
  /** @param {TargetedMouseEvent<HTMLButtonElement>} event */
  const act = async (event) => {
    const dialog = event.currentTarget.closest("dialog");
    setBusy(true);
    try {
      await ask(`${subject.home}/${verb}`, { method: "POST" });
      dialog?.close();
      done();
    } catch (thrown) {
      const refused = /** @type {Problem} */ (thrown);
      if (refused.status === 403) refused.message = "This token is read-only. Sign in with a token that has the scope write: lifthouse token create --scope write";
      setError(refused);
    }
    setBusy(false);
  };
  if (!session.mayWrite) return null;
  return (
    <>
      <button type="button" id="switch" onClick={() => setAsking(true)}>{body.active ? "Stop" : "Start"} …</button>
      {asking && (
        <Dialog title={`${body.active ? "Stop" : "Start"} “${body.name}”?`} onClose={close}>
          <Consequences body={body} scored={scored} />
          {error && <Fault error={error} />}
          <p class="buttons"><button type="button" onClick={leave}>Cancel</button> <button type="button" id="confirm" class="strong" disabled={busy} onClick={act}>{body.active ? "Stop" : "Start"}</button></p>
        </Dialog>
      )}
    </>
  );
}
