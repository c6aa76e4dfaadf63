// @ts-check
// The plot of lifts as an SVG file that stands alone.

/** @typedef {{ plot: Element, name: string, lift: string }} PlotRow */

const space = "http://www.w3.org/2000/svg";
const sizes = { width: 900, label: 330, figure: 100, row: 40, head: 70 };
const shown = ["stroke", "stroke-width", "stroke-dasharray", "fill", "font-size", "font-weight", "opacity"];

/** put appends an SVG element and returns it.
 * @param {Element} parent @param {string} name @param {Record<string, string | number>} attributes @param {string} [text] */
function put(parent, name, attributes, text) {
  const element = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  return parent.appendChild(element);
}

/** copied returns a copy of an element of the page with the colours and strokes that the
 * page's style sheet gives it.
 * @param {Element} element
 * @returns {Element} */
function copied(element) {
  const copy = /** @type {Element} */ (element.cloneNode(false)), style = getComputedStyle(element);
  copy.removeAttribute("class");
  for (const name of shown) copy.setAttribute(name, style.getPropertyValue(name));
  for (const child of element.childNodes) copy.append(child.nodeType === 1 ? copied(/** @type {Element} */ (child)) : child.cloneNode());
  return copy;
}

/** plotOf returns an SVG document with a title, a line about the view and one row for each lift. Texts are
 * escaped by the serializer.
 * @param {PlotRow[]} rows @param {string} title @param {string} view */
export function plotOf(rows, title, view) {
  const height = sizes.head + rows.length * sizes.row + 10, ink = getComputedStyle(document.body);
  const root = document.createElementNS(space, "svg");
  for (const [name, value] of Object.entries({ width: sizes.width, height, viewBox: `0 0 ${sizes.width} ${height}`, "font-family": "system-ui, sans-serif" })) root.setAttribute(name, String(value));
  put(root, "title", {}, title);
  put(root, "rect", { width: "100%", height: "100%", fill: getComputedStyle(document.querySelector("section") ?? document.body).backgroundColor });
  put(root, "text", { x: 16, y: 30, fill: ink.color, "font-size": 17, "font-weight": 600 }, title);
  put(root, "text", { x: 16, y: 52, fill: ink.color, "font-size": 13 }, view);
  rows.forEach(({ plot, name, lift }, i) => {
    const y = sizes.head + i * sizes.row;
    put(root, "text", { x: 16, y: y + 20, fill: ink.color, "font-size": 13 }, name);
    put(root, "text", { x: sizes.label + sizes.figure - 16, y: y + 20, fill: ink.color, "text-anchor": "end", "font-size": 13, "font-weight": 600 }, lift);
    const place = copied(plot);
    for (const [key, value] of Object.entries({ x: sizes.label + sizes.figure, y, width: sizes.width - sizes.label - sizes.figure - 20, height: 32 })) place.setAttribute(key, String(value));
    root.append(place);
  });
  return new XMLSerializer().serializeToString(root);
}
