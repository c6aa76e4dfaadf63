// @ts-check
import { count, percent } from "./format.js";
import { DataTable, Num, hue } from "./parts.jsx";

/** @import { Results } from "./types.d.ts" */

const steps = /** @type {const} */ ({ views: "Views", clicks: "Clicks", submits: "Submits", conversions: "Conversions" });

/** Funnel shows the events of a widget from its views to its conversions, as shares of the views of a variation.
 * @param {{ results: Results }} props */
export const Funnel = ({ results: { variations } }) => (
  <details id="funnel"><summary>Show the funnel</summary>
    <DataTable label="Funnel" heads={["Events", ...variations.map((v) => v.name)]}>
      {(/** @type {(keyof typeof steps)[]} */ (Object.keys(steps))).map((step) => (
        <tr key={step}><th scope="row">{steps[step]}</th>{variations.map((v, index) => {
          const share = v.views ? (v[step] ?? 0) / v.views : 0;
          return <td key={v.id} class="wide"><Num value={v[step]}>{count(v[step])}</Num> <small>{percent(share)} of the views</small><svg class={"bar " + hue(index)} height="12" width="100%" aria-hidden="true"><rect width={100 * Math.min(share, 1) + "%"} height="12" /></svg></td>;
        })}</tr>
      ))}
    </DataTable>
  </details>
);
