import { useEffect, useRef, useState } from "preact/hooks";

// Num shows a number, and carries it as the API gave it.
export const Num = ({ value, children }) => (value === null || value === undefined ? <span>{children}</span> : <data value={String(value)}>{children}</data>);

// hint says what to do about a refusal.
function hint({ status, wait }, retried) {
  const soon = retried ? ` This page retries automatically${wait > 1 ? ` in ${wait} seconds` : ""}.` : " Try again in a moment.";
  if (status === 429) return "This token has reached its rate limit. Other tabs count, too." + soon;
  if (status === 503) return "The server is overloaded, starting or stopping." + soon;
  if (status === 0 || status > 500) return soon.trim();
  if (status === 500) return "This is a bug in the server. Its log contains this request id." + soon;
  return undefined;
}

const titles = { 0: "No response", 400: "Invalid request", 404: "Not found", 429: "Too many requests", 503: "Service unavailable" };

// Fault shows a refusal. What was asked wrongly is never right the next time;
// then reset leads back to what can be asked.
export function Fault({ error, again, reset }) {
  const hopeless = error.status === 400 || error.status === 404;
  const badFilter = error.status === 400 && error.faults?.length > 0 && error.faults.every((f) => f.name.startsWith("filters["));
  return (
    <div class="notice bad" role="alert">
      <p><b>{badFilter ? "Invalid filter" : titles[error.status] || error.title || "Request failed"}</b>: {error.message}</p>
      {hint(error, again) && <p>{hint(error, again)}</p>}
      {error.faults?.length > 0 && (
        <ul>{error.faults.map((f) => <li key={f.name}><code>{f.name}</code> is <code>{f.value || "empty"}</code>: {f.detail}</li>)}</ul>
      )}
      {error.requestId && <p class="quiet">Request id: {error.requestId}</p>}
      {again && !hopeless && <button type="button" onClick={again}>Retry now</button>}
      {reset && error.status === 400 && <p><a {...reset}>Reset filters and settings</a></p>}
    </div>
  );
}

export const Loading = ({ what }) => <p class="loading" role="status">Loading {what} …</p>;

export const Empty = ({ children }) => <p class="empty">{children}</p>;

export function State({ active, startDate }) {
  if (active) return <span class="state on">● running</span>;
  return <span class="state">{startDate ? "■ stopped" : "○ not started"}</span>;
}

// leave closes the dialog of a button, which gives the focus back.
export const leave = (event) => event.currentTarget.closest("dialog").close();

// Dialog asks in the browser's own modal window, which keeps the focus.
export function Dialog({ title, onClose, children }) {
  const ref = useRef();
  useEffect(() => { ref.current.showModal(); }, []);
  return (
    <dialog ref={ref} onClose={onClose} aria-labelledby="dialog-title">
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

export function Copied({ text, label }) {
  const [said, say] = useState("");
  const copy = () => navigator.clipboard.writeText(text).then(() => say("Copied"), () => say("Copy failed. Select and copy the text."));
  return <p class="copy"><button type="button" onClick={copy}>{label}</button> <span role="status">{said}</span></p>;
}

// Mark is the sign of a variation: its shape tells it as well as its colour.
const shapes = ["M2 2h8v8H2z", "M6 1l5 10H1z", "M6 1a5 5 0 1 0 .01 0z", "M6 0l6 6-6 6-6-6z", "M4 1h4v3h3v4H8v3H4V8H1V4h3z", "M6 11L1 1h10z"];
export const hue = (index) => "v" + (index % 6);
export const Mark = ({ index }) => (
  <svg class={"mark " + hue(index)} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><path d={shapes[index % shapes.length]} /></svg>
);
