import { useState } from "preact/hooks";
import { ask } from "./api.js";
import { Dialog, Fault, leave } from "./parts.jsx";

// Switch starts or stops a campaign or a widget, after asking.
export function Switch({ subject, body, done }) {
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState();
  const [busy, setBusy] = useState(false);
  const verb = body.active ? "stop" : "start";
  const close = () => { setAsking(false); setError(undefined); };
  const act = async (event) => {
    const dialog = event.currentTarget.closest("dialog");
    setBusy(true);
    try {
      await ask(`${subject.home}/${verb}`, { method: "POST" });
      dialog.close();
      done();
    } catch (refused) {
      if (refused.status === 403) refused.message = "Your token may read and not change anything. Sign in with one of the scope write: lifthouse token create --scope write.";
      setError(refused);
    }
    setBusy(false);
  };
  return (
    <>
      <button type="button" id="switch" onClick={() => setAsking(true)}>{body.active ? "Stop" : "Start"} …</button>
      {asking && (
        <Dialog title={`${body.active ? "Stop" : "Start"} “${body.name}”?`} onClose={close}>
          <p>{body.active ? "It ends now for everybody: its end is set to this moment. Its results stay." : "It runs from now on for everybody."}</p>
          {error && <Fault error={error} />}
          <p class="buttons"><button type="button" onClick={leave}>Leave it</button> <button type="button" id="confirm" class="strong" disabled={busy} onClick={act}>{body.active ? "Stop it" : "Start it"}</button></p>
        </Dialog>
      )}
    </>
  );
}
