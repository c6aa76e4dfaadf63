// @ts-check
import { useState } from "preact/hooks";
import { ask } from "./api.js";
import { Dialog, Fault, leave } from "./parts.jsx";

/** @import { Item, Subject } from "./types.d.ts" */

/** @import { TargetedMouseEvent } from "preact" */
/** @import { Problem } from "./api.js" */

/** Switch starts or stops a campaign or a widget after confirmation.
 * @param {{ subject: Subject, body: Item, done: () => unknown }} props */
export function Switch({ subject, body, done }) {
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
  return (
    <>
      <button type="button" id="switch" onClick={() => setAsking(true)}>{body.active ? "Stop" : "Start"} …</button>
      {asking && (
        <Dialog title={`${body.active ? "Stop" : "Start"} “${body.name}”?`} onClose={close}>
          <p>{body.active ? "It ends now for all visitors. Its end date becomes the current time. Its results are kept." : "It becomes active now for all visitors."}</p>
          {error && <Fault error={error} />}
          <p class="buttons"><button type="button" onClick={leave}>Cancel</button> <button type="button" id="confirm" class="strong" disabled={busy} onClick={act}>{body.active ? "Stop" : "Start"}</button></p>
        </Dialog>
      )}
    </>
  );
}
