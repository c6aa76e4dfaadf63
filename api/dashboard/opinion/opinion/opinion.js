// The page at /opinion: a table of past tests, judged by the program of cmd/opinion. All that it shows of a table is set as
// text, never as HTML.

const mde = 0.2; // minimum effect of tests, as that of new campaigns
const mostBytes = 5 * 2 ** 20; // of a table
const slowest = 50; // milliseconds before the page shows that it computes

const byId = (id) => document.getElementById(id);
const table = byId("table");

/** Returns an element with attributes and children. Texts become text nodes. */
function element(name, attributes, ...children) {
  const isPicture = ["svg", "line", "circle", "title"].includes(name);
  const made = isPicture ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  const kept = (child) => (typeof child === "string" ? child.replaceAll(" %", "\u00a0%") : child); // together in a line
  made.append(...children.filter((child) => child !== null).map(kept));
  return made;
}

/** Passes bytes through a stream such as a DecompressionStream, up to a number of bytes. */
async function transform(bytes, stream, most = Infinity) {
  const chunks = [];
  let size = 0;
  for await (const chunk of new Blob([bytes]).stream().pipeThrough(stream)) {
    size += chunk.length;
    if (size > most) throw new Error("it is too large");
    chunks.push(chunk);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

/** Starts the program, which then has the function judgeTable. */
async function start() {
  if (!globalThis.opinionProgram) throw new Error("it was built without its program; run make opinion and build again");
  const program = new Go();
  const code = await transform(bytesOf(globalThis.opinionProgram), new DecompressionStream("gzip"));
  program.run((await WebAssembly.instantiate(code, program.importObject)).instance);
}

const started = start();

/** Judges the table of the page. */
async function judge() {
  const text = table.value;
  byId("answer").hidden = true;
  if (!text.trim()) {
    byId("status").textContent = "Paste a table first.";
    return;
  }
  byId("status").textContent = "Computing …";
  await new Promise((done) => setTimeout(done, slowest)); // shows the text
  try {
    await started;
    const answer = JSON.parse(globalThis.judgeTable(text, mde));
    byId("answer").replaceChildren(...(answer.faults ? showFaults(answer.faults) : show(answer)));
    byId("status").textContent = "";
  } catch (error) {
    byId("answer").replaceChildren();
    byId("status").textContent = `The page cannot compute: ${error.message}. Reload it and try again.`;
  }
  byId("answer").hidden = false;
  performance.mark("verdict");
}

function showFaults(faults) {
  return [
    element("section", { class: "refused" }, element("h2", {}, "The table cannot be read"),
      element("ul", { class: "faults" }, ...faults.map((fault) => element("li", {}, fault)))),
  ];
}

function show({ opinion, csv }) {
  const scale = newScale(opinion.tests);
  const left = element("p", { class: "quiet" }, opinion.notes?.length ? `Left out. ${opinion.notes.join("; ")}.` : "");
  return [
    element("section", {}, element("p", { class: "answer" }, opinion.text),
      ...opinion.sentences.map((sentence) => element("p", {}, sentence)), left,
      element("p", { class: "buttons" },
        element("button", { onclick: copyLink }, "Copy a link with the table"),
        element("button", { onclick: () => save(csv) }, "Save as CSV"),
        element("button", { onclick: () => print() }, "Print"))),
    element("section", {}, element("h2", {}, "Tests"),
      element("p", { class: "quiet key" }, element("b"), " observed, with its 95 % interval ", element("b", { class: "expected" }),
        ` expected, with its 90 % interval; dashed: no effect; edges: ±${Math.round(100 * scale)} %`),
      element("ol", { class: "tests" }, ...opinion.tests.flatMap((test) => test.treatments.map((t) => showTreatment(test, t, scale))))),
  ];
}

function showTreatment(test, treatment, scale) {
  const several = test.treatments.length > 1 ? ` · ${treatment.name}` : "";
  return element("li", {},
    element("div", {}, `${test.name}${several} `, treatment.shipped ? element("span", { class: "badge" }, treatment.winner ? "winner" : "shipped") : null),
    picture(treatment, scale), element("small", {}, treatment.text));
}

/** Returns the lift that is at the edges of all pictures: most intervals fit, and no outlier shrinks the others. */
function newScale(tests) {
  const ends = tests.flatMap((test) => test.treatments.flatMap((t) => [...(t.lift.interval ?? []), ...(t.expected?.interval ?? [])]));
  const sizes = ends.filter((end) => end !== null).map(Math.abs).sort((a, b) => a - b);
  const share = 0.9;
  const end = Math.max(sizes[Math.floor(share * (sizes.length - 1))] ?? 0, 0.01) * 1.1;
  return Math.ceil(100 * end) / 100;
}

function picture(treatment, scale) {
  const x = (lift) => `${50 + 50 * Math.max(-1, Math.min(1, (lift ?? scale) / scale))}%`;
  const [high, low] = [13, 29];
  const parts = [element("line", { class: "zero", x1: "50%", x2: "50%", y1: 0, y2: 42 })];
  const add = (kind, y, value, interval) => {
    if (value === null || value === undefined) return;
    if (interval) parts.push(element("line", { class: kind, x1: x(interval[0] ?? -scale), x2: x(interval[1]), y1: y, y2: y }));
    parts.push(element("circle", { class: kind, cx: x(value), cy: y, r: 4 }));
  };
  add("observed", high, treatment.lift.value, treatment.lift.interval);
  add("expected", low, treatment.expected?.value, treatment.expected?.interval);
  return element("svg", { role: "img", "aria-label": treatment.text }, ...parts);
}

function save(csv) {
  const link = element("a", { href: URL.createObjectURL(new Blob([csv], { type: "text/csv" })), download: "opinion.csv" });
  link.click();
}

/** Copies the address of the page with the compressed table behind #, which browsers do not send to servers. */
async function copyLink() {
  const bytes = await transform(new TextEncoder().encode(table.value), new CompressionStream("gzip"));
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  location.hash = btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  try {
    await navigator.clipboard.writeText(location.href);
    byId("status").textContent = "The link is copied.";
  } catch {
    byId("status").textContent = "The link is in the address bar.";
  }
}

/** Judges the table behind the # of the address, if there is one. */
async function readLink() {
  const text = location.hash.slice(1);
  if (!text) return;
  try {
    const bytes = bytesOf(text.replaceAll("-", "+").replaceAll("_", "/"));
    table.value = new TextDecoder().decode(await transform(bytes, new DecompressionStream("gzip"), mostBytes));
  } catch {
    byId("status").textContent = "The link has no table that can be read.";
    return;
  }
  await judge();
}

async function readFile(file) {
  if (!file) return;
  if (file.size > mostBytes) {
    byId("answer").replaceChildren(...showFaults([`file: must have at most ${mostBytes} bytes, has ${file.size}`]));
    byId("answer").hidden = false;
    return;
  }
  table.value = await file.text();
  await judge();
}

byId("run").addEventListener("click", judge);
byId("file").addEventListener("change", (event) => readFile(event.target.files[0]));
byId("example").addEventListener("click", () => {
  table.value = `test,variation,visitors,conversions,shipped
Checkout in one step,Control,12034,602,
Checkout in one step,One step,11987,684,yes
Larger pictures,Control,9050,412,
Larger pictures,Large,9110,431,yes
Exit offer,Control,5210,261,
Exit offer,Offer,5188,322,yes
Sticky header,Control,14040,990,
Sticky header,Sticky,13985,972,no
Free gift,Control,4100,190,
Free gift,Gift,4087,195,no`;
  judge();
});
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  table.classList.add("dropping");
});
document.addEventListener("dragleave", () => table.classList.remove("dropping"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  table.classList.remove("dropping");
  readFile(event.dataTransfer.files[0]);
});
globalThis.addEventListener("hashchange", () => {
  if (byId("answer").hidden) readLink();
});
readLink();
