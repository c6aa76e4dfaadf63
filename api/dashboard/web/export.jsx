// @ts-check
import { useEffect, useState } from "preact/hooks";
import { ask } from "./api.js";
import { Copied, Fault, Loading } from "./parts.jsx";
import { plotOf } from "./plot.js";

/** @import { Problem } from "./api.js" */
/** @import { PlotRow } from "./plot.js" */

/** Export shows the API request and the SQL, saves the results as CSV and the plot of the
 * uplifts as SVG, and prints the page.
 * @param {{ path: string, title: string, plot: boolean }} props */
export function Export({ path, title, plot }) {
  const [shown, show] = useState(/** @type {{ loading?: boolean, body?: string, saved?: string, error?: Problem } | undefined} */ (undefined));
  const text = `curl -sg -H "Authorization: Bearer $LIFTHOUSE_TOKEN" '${location.origin}${path.replaceAll("'", "%27")}'`;
  useEffect(() => show(undefined), [path]);
  const sql = () => { show({ loading: true }); return ask(path, { accept: "application/sql" }).then(({ body }) => show({ body }), (error) => show({ error })); };
  const csv = () => ask(path, { accept: "text/csv" }).then(({ body }) => show({ saved: save(body, "text/csv", nameOf(path) + ".csv") }), (error) => show({ error }));
  const svg = () => {
    const rows = [...document.querySelectorAll(".scorecard tbody tr[data-metric]")].map((row) => plotted(row)).filter((row) => row !== undefined);
    document.documentElement.dataset.paper = ""; // a file has light colours in both schemes
    const plot = plotOf(rows, title);
    delete document.documentElement.dataset.paper;
    show({ saved: save(plot, "image/svg+xml", nameOf(path) + ".svg") });
  };
  return (
    <section aria-labelledby="request">
      <h2 id="request">Export</h2>
      <p class="buttons"><button type="button" id="csv" onClick={csv}>Download CSV</button>
        {plot && <button type="button" id="svg" onClick={svg}>Download plot (SVG)</button>}
        <button type="button" id="print" onClick={() => print()}>Print or save as PDF</button> <span role="status">{shown?.saved && "Saved as " + shown.saved}</span></p>
      <details><summary>Show API request</summary><pre tabIndex={0} id="curl">{text}</pre><Copied text={text} label="Copy request" /></details>
      <details onToggle={(e) => e.currentTarget.open && !shown?.body && sql()}>
        <summary id="show-sql">Show SQL</summary>
        {shown?.body ? <><pre tabIndex={0} id="sql">{shown.body}</pre><Copied text={shown.body} label="Copy SQL" /></> : shown?.loading && <Loading what="SQL" />}
      </details>
      {shown?.error && <Fault error={shown.error} />}
    </section>
  );
}

/** nameOf returns the name of a file with the results of a path.
 * @param {string} path */
const nameOf = (path) => path.replace(/\?.*/, "").replace("/v1/", "").replaceAll("/", "-");

/** plotted returns the text and the plot of a row of the scorecard.
 * @param {Element} row
 * @returns {PlotRow | undefined} */
function plotted(row) {
  const plot = row.querySelector("svg.forest-row"), [name, about] = [row.querySelector("th")?.firstChild?.textContent ?? "", row.querySelector("th small")?.textContent ?? ""];
  return plot ? { plot, name: `${name.trim()} (${about})`, uplift: row.querySelector("td[data-label=Uplift] b")?.textContent ?? "" } : undefined;
}

/** save downloads a text and returns the file name.
 * @param {string} text @param {string} type @param {string} name */
function save(text, type, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  return name;
}
