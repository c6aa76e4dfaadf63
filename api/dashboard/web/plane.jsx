// @ts-check
import { hue } from "./parts.jsx";

/** @import { ComponentChildren } from "preact" */
/** @import { Scale } from "./types.d.ts" */

const room = 640, height = 260, left = 64; // of the drawing

/** @typedef {(at: number) => number} Across the place of a step of the horizontal axis */
/** @typedef {(value: number | null | undefined, open?: number) => number} Up the place of a value, or of open without one */

/** Plane draws the axes of a picture in the colour of a variation: steps from 0 to last across, and a scale of values up.
 * Its data are also in a table.
 * @param {{ index?: number, label: string, scale: Scale, write: (x: number) => string, last: number, marks: [number, string][], children: (x: Across, y: Up) => ComponentChildren }} props marks: texts below steps */
export function Plane({ index = 0, label, scale, write, last, marks, children }) {
  /** @type {Across} */
  const x = (at) => left + ((room - left - 10) * at) / Math.max(last, 1);
  /** @type {Up} */
  const y = (value, open = 0) => height - 24 - ((height - 34) * scale.clip(value ?? null, open)) / 100;
  return (
    <svg class={"plane " + hue(index)} viewBox={`0 0 ${room} ${height}`} width="100%" role="img" aria-label={label + ". See the data table below."}>
      {scale.ticks.map((t) => <g key={t}><line class="grid" x1={left} x2={room} y1={y(t)} y2={y(t)} /><text x={left - 6} y={y(t) + 4} text-anchor="end">{write(t)}</text></g>)}
      <line class="zero" x1={left} x2={room} y1={y(0)} y2={y(0)} />
      {children(x, y)}
      {marks.map(([at, text]) => <text key={text} x={x(at)} y={height - 4} text-anchor="middle">{text}</text>)}
    </svg>
  );
}

/** pathOf returns the points of a line through the steps that have a value.
 * @param {(number | null | undefined)[]} values @param {Across} x @param {Up} y */
export const pathOf = (values, x, y) => values.flatMap((value, i) => (value === null || value === undefined ? [] : [`${x(i)},${y(value)}`])).join(" ");
