// @ts-check
import { useEffect, useState } from "preact/hooks";
import { ask } from "./api.js";
import { Copied, Fault, Part } from "./parts.jsx";
import { plotOf } from "./plot.js";

/** @import { Problem } from "./api.js" */
/** @import { PlotRow } from "./plot.js" */

/** Export shows the API requests of the report and of its visitors, saves the results as CSV and the plot of the
 * lifts as SVG, and prints the page.
 * @param {{ path: string, title: string, view: string | undefined, plot: boolean }} props */
export function Export({ path, title, view, plot }) {
  const [shown, show] = useState(/** @type {{ saved?: string, error?: Problem } | undefined} */ (undefined));
  const visitors = visitorsOf(path), isCondition = /[?&]visitors=/.test(path); // which the file cannot have
  useEffect(() => show(undefined), [path]);
  const csv = () => ask(path, { accept: "text/csv" }).then(({ body }) => show({ saved: save(body, "text/csv", nameOf(path) + ".csv") }), (error) => show({ error }));
  const svg = () => {
    const rows = [...document.querySelectorAll(".scorecard tbody tr[data-metric]")].map((row) => plotted(row)).filter((row) => row !== undefined);
    document.documentElement.dataset.paper = ""; // a file has light colours in both schemes
    const plot = plotOf(rows, title, view ?? "");
    delete document.documentElement.dataset.paper;
    show({ saved: save(plot, "image/svg+xml", nameOf(path) + ".svg") });
  };
  return (
    <Part id="request" title="Export">
      <p class="buttons"><button type="button" id="csv" onClick={csv}>Download CSV</button>
        {plot && <button type="button" id="svg" onClick={svg}>Download plot (SVG)</button>}
        <button type="button" id="print" onClick={() => print()}>Print or save as PDF</button> <span role="status">{shown?.saved && "Saved as " + shown.saved}</span></p>
      <details><summary>Show API requests</summary>
        <pre tabIndex={0} id="curl">{curlOf(path)}</pre><Copied text={curlOf(path)} label="Copy request" />
        {!isCondition && <><p>A Parquet file with one row for each of these visitors:</p>
        <pre tabIndex={0} id="curl-visitors">{curlOf(visitors, " -OJ")}</pre><Copied text={curlOf(visitors, " -OJ")} label="Copy request" /></>}
      </details>
      {shown?.error && <Fault error={shown.error} />}
    </Part>
  );
}

/** curlOf returns a command that requests a path.
 * @param {string} path @param {string} [flags] */
const curlOf = (path, flags = "") => `curl -sg${flags} -H "Authorization: Bearer $LIFTHOUSE_TOKEN" '${location.origin}${path.replaceAll("'", "%27")}'`;

/** visitorsOf returns the path of the visitors of a report.
 * @param {string} path */
function visitorsOf(path) {
  const [resource, query] = path.split("?"), kept = new URLSearchParams(query);
  for (const name of ["dimension", "compareMetric", "interval", "scorecard"])
    kept.delete(name);
  return resource.replace(/results$/, "visitors.parquet") + (kept.size ? "?" + kept : "");
}

/** nameOf returns the name of a file with the results of a path, as the server names it.
 * @param {string} path */
const nameOf = (path) => decodeURIComponent(path).replace("/v1/", "").replaceAll("filters[", "[").slice(0, 130).replace(/[^\w.]+/g, "-").replace(/-$/, "");

/** plotted returns the text and the plot of a row of the scorecard.
 * @param {Element} row
 * @returns {PlotRow | undefined} */
function plotted(row) {
  const plot = row.querySelector("svg.forest-row"), [name, about] = [row.querySelector("th")?.firstChild?.textContent ?? "", row.querySelector("th small")?.textContent ?? ""];
  return plot ? { plot, name: `${name.trim()} (${about})`, lift: row.querySelector("td[data-label=Lift] b")?.textContent ?? "" } : undefined;
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
