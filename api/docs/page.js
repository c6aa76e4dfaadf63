// @ts-check
// The script of the page at /docs: the search, the menu, the copy buttons and the address of the server in the commands.
// The page is complete without it.
"use strict";

/** all returns the elements that match a selector.
 * @param {string} selector @param {ParentNode} within @returns {HTMLElement[]} */
const all = (selector, within = document) => [...within.querySelectorAll(selector)].filter((e) => e instanceof HTMLElement);

const form = all("[role=search]")[0];
const search = /** @type {HTMLInputElement} */ (document.getElementById("search"));
const found = all("#found")[0];
const menu = /** @type {HTMLDetailsElement} */ (document.querySelector(".menu"));
const narrow = matchMedia("(max-width: 62rem)");
const sections = all("main section");
const links = new Map(all("nav li a").map((link) => [link.getAttribute("href")?.slice(1), link]));

document.documentElement.classList.add("scripted");
form.hidden = false;
for (const origin of all(".origin")) origin.textContent = location.origin;

// Search.

/** Row is a parameter or field with its own text, without that of the fields in it.
 * @typedef {{ element: HTMLElement, text: string, above: HTMLElement[] }} Row */
/** @typedef {{ section: HTMLElement, text: string, rows: Row[] }} Entry */

/** The texts, which are read at the first search.
 * @type {Entry[] | undefined} */
let entries;
/** The folded parts that a search has opened.
 * @type {Set<HTMLDetailsElement>} */
const opened = new Set();

/** @param {Element | null | undefined} element */
const textOf = (element) => (element?.textContent ?? "").toLowerCase();

/** above returns the fields that contain a field.
 * @param {HTMLElement} field */
function above(field) {
  const fields = [];
  for (let at = field.parentElement?.closest(".field"); at instanceof HTMLElement; at = at.parentElement?.closest(".field")) fields.push(at);
  return fields;
}

/** @param {HTMLElement} section @returns {Entry} */
function entryOf(section) {
  const rows = all(".field", section).map((element) => ({ element, text: textOf(element.querySelector("tr")), above: above(element) }));
  const own = [...section.children].filter((child) => child.matches("h2, h3, p") && !child.matches(".others"));
  return { section, text: own.map(textOf).join(" "), rows };
}

/** filter shows what contains all words.
 * @param {string[]} words */
function filter(words) {
  entries ??= sections.map(entryOf);
  for (const part of opened) part.open = false;
  opened.clear();
  let operations = 0, fields = 0;
  for (const entry of entries) {
    const whole = words.every((word) => entry.text.includes(word));
    const hits = words.length ? entry.rows.filter((row) => words.every((word) => row.text.includes(word))) : [];
    const shown = new Set(hits.flatMap((row) => [row.element, ...row.above]));
    for (const row of entry.rows) {
      row.element.hidden = shown.size > 0 && !shown.has(row.element);
      row.element.classList.remove("hit");
    }
    for (const { element } of hits) element.classList.add("hit");
    entry.section.hidden = !whole && hits.length === 0;
    entry.section.classList.toggle("narrowed", !whole);
    unfold(entry.section, hits);
    if (!entry.section.hidden && entry.section.matches(".operation")) operations++;
    fields += hits.length;
  }
  headings();
  found.textContent = words.length ? `${counted(operations, "operation")}, ${counted(fields, "parameter or field", "parameters and fields")}` : "";
}

/** unfold opens the folded parts that have hits, and marks the parts and tables without hits.
 * @param {HTMLElement} section @param {Row[]} hits */
function unfold(section, hits) {
  for (const part of all("details, table", section)) {
    const within = hits.some((hit) => part.contains(hit.element));
    part.classList.toggle("unmatched", !within);
    if (within && part instanceof HTMLDetailsElement && !part.open) {
      part.open = true;
      opened.add(part);
    }
  }
}

/** headings hides the headings and the menu entries that have nothing shown. */
function headings() {
  for (const section of sections) {
    const item = links.get(section.id)?.parentElement;
    if (item) item.hidden = section.hidden;
  }
  for (const heading of all("main .tag")) {
    let empty = true;
    for (let at = heading.nextElementSibling; at instanceof HTMLElement && !at.matches(".tag") && empty; at = at.nextElementSibling) empty = at.hidden;
    heading.hidden = empty;
    const item = links.get(heading.id)?.parentElement;
    if (item) item.hidden = empty;
  }
  for (const list of all("nav ul")) {
    list.hidden = all("li", list).every((item) => item.hidden);
    if (list.previousElementSibling instanceof HTMLElement) list.previousElementSibling.hidden = list.hidden;
  }
}

/** @param {number} n @param {string} one @param {string} many */
const counted = (n, one, many = one + "s") => `${n} ${n === 1 ? one : many}`;

function apply() { filter(search.value.toLowerCase().split(/\s+/).filter(Boolean)); }

function clear() {
  if (!search.value) return;
  search.value = "";
  apply();
}

search.addEventListener("input", apply);
form.addEventListener("submit", (event) => event.preventDefault());
search.addEventListener("keydown", (event) => {
  if (event.key === "Escape") clear();
});
document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLElement && event.target.matches("input");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  search.focus();
});
if (search.value) apply(); // kept by the browser over a reload

// Menu and links.

document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[href^='#']") : null;
  if (!link) return;
  const target = document.getElementById(decodeURIComponent(link.getAttribute("href")?.slice(1) ?? ""));
  if (target?.hidden) clear();
  if (narrow.matches) menu.open = false;
});

const watcher = new IntersectionObserver((changes) => {
  for (const { target, isIntersecting } of changes) {
    const link = links.get(target.id);
    if (!isIntersecting || !link) continue;
    for (const other of links.values()) other.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    if (!narrow.matches) link.scrollIntoView({ block: "nearest" });
  }
}, { rootMargin: "-15% 0px -75% 0px" });
for (const section of all("main section, main .tag")) watcher.observe(section);

// Copy buttons.

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return "Copied";
  } catch {
    return "Failed"; // for example on a page without TLS
  }
}

for (const sample of all(".sample")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    button.textContent = await copy(sample.querySelector("pre")?.textContent ?? "");
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  sample.append(button);
}
