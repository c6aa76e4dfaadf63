// @ts-check
// The page of a readout: what has changed since, three buttons, and the readout in a frame without scripts. It shares no
// code with the page of results, so it is small.

/** @import { components } from "./openapi.d.ts" */
/** @typedef {components["schemas"]["Readout"]} Readout */

const signedIn = "lifthouse.token"; // as in api.js
const id = location.pathname.split("/").at(-1) ?? "", mine = "lifthouse.readout." + id;
const main = /** @type {HTMLElement} */ (document.getElementById("main"));

const given = new URLSearchParams(location.hash.slice(1)).get("share");
if (given) {
  sessionStorage.setItem(mine, given);
  history.replaceState(null, "", location.pathname);
}
const shared = sessionStorage.getItem(mine);

/** make returns an element.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name @param {Record<string, string>} [attributes] @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]} */
function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** button returns a button.
 * @param {string} text @param {() => unknown} press */
function button(text, press) {
  const made = make("button", { type: "button" }, text);
  made.addEventListener("click", press);
  return made;
}

/** remembered returns the token that this device keeps, as in api.js; null: it keeps none. */
function remembered() {
  try {
    return localStorage.getItem(signedIn);
  } catch {
    return null;
  }
}

/** ask sends a request. The error of a response that is no success has its status.
 * @param {string} path @param {string} accept */
async function ask(path, accept) {
  const token = shared ?? sessionStorage.getItem(signedIn) ?? remembered();
  if (!token) throw Object.assign(new Error(""), { status: 401 });
  const response = await fetch("/v1/readouts/" + id + path, { headers: { Authorization: "Bearer " + token, Accept: accept }, credentials: "omit" })
    .catch(() => { throw Object.assign(new Error("The server does not respond."), { status: 0 }); });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw Object.assign(new Error(problem.detail ?? response.statusText), { status: response.status });
}

/** signIn shows the form for a token.
 * @param {string} said why it is shown */
function signIn(said) {
  const field = make("input", { name: "token", type: "password", required: "", autocomplete: "off", placeholder: "lh_…" });
  const form = make("form", {}, make("label", {}, "Token ", field), " ", make("button", {}, "Sign in"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(signedIn, field.value.trim());
    load();
  });
  main.replaceChildren(make("h1", {}, "Readout"), make("p", {}, "Sign in with a token to read it. This tab keeps the token until you close it."), form);
  if (said) main.append(make("p", { role: "alert", class: "bad" }, said));
}

/** refuse says why there is nothing to read.
 * @param {unknown} error */
function refuse(error) {
  const { status, message } = /** @type {Error & { status?: number }} */ (error);
  if (status === 401 && !shared) return signIn(message);
  const title = { 401: "This link has ended", 404: "There is no such readout", 410: "This readout was withdrawn" }[status ?? 0] ?? "Request failed";
  main.replaceChildren(make("h1", {}, title), make("p", { role: "alert" }, status === 401 ? "It has expired or was revoked. Ask the person who shared it for a new one." : message));
  if (status === 404 && !shared) main.append(make("p", {}, "The token of this tab may not read it. "), button("Sign in with another token", () => signIn("")));
  if (![401, 404, 410].includes(status ?? 0)) main.append(button("Retry now", load));
}

/** copy copies the address, or shows it if the browser does not permit that.
 * @param {HTMLElement} status */
async function copy(status) {
  const link = location.origin + location.pathname + (shared ? "#share=" + shared : "");
  try {
    await navigator.clipboard.writeText(link);
    status.textContent = "The link is copied.";
  } catch {
    const field = make("input", { readonly: "", size: "60", "aria-label": "Link", value: link });
    status.replaceChildren(field);
    field.select();
  }
}

/** show shows a readout and its file.
 * @param {Readout} readout @param {string} file */
function show(readout, file) {
  const what = readout.look ? "look " + readout.look : "the full days until " + new Date(Date.parse(readout.endedAt) - 1).toISOString().slice(0, 10);
  const status = make("span", { role: "status" });
  const frame = make("iframe", { title: "Readout", sandbox: "allow-same-origin allow-modals", srcdoc: file });
  // The frame is as high as its text, whose height does not depend on that of the frame.
  const fit = () => { frame.style.height = Math.ceil(frame.contentDocument?.body.getBoundingClientRect().height ?? 0) + "px"; };
  frame.addEventListener("load", fit);
  addEventListener("resize", fit);
  const download = () => {
    const url = URL.createObjectURL(new Blob([file], { type: "text/html" }));
    make("a", { href: url, download: `readout-${id}.html` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  };
  const since = readout.sinceThen;
  const back = "/?" + (readout.campaignId ? "campaign=" + readout.campaignId : `widget=${readout.widgetId}&experiment=${readout.experimentId}`) + "&websiteId=" + readout.websiteId;
  document.title = `Readout of ${readout.name}`;
  main.replaceChildren(
    ...(shared ? [] : [make("p", {}, make("a", { href: back }, "← " + (readout.name || "Results")))]),
    make("h1", {}, "Readout of " + what),
    make("p", { class: "since" + (since?.changed ? " changed" : "") }, since?.text ?? "", " ", make("small", {}, `As of ${new Date().toISOString().slice(0, 10)}. The readout below does not change.`)),
    make("p", { class: "buttons" }, button(`Download file (${Math.ceil(readout.size / 1000)} kB)`, download), button("Print or save as PDF", () => frame.contentWindow?.print()), button("Copy link", () => copy(status)), status),
    make("div", { class: "paper" }, frame),
  );
}

/** load asks for the readout and shows it. */
async function load() {
  try {
    const [readout, file] = await Promise.all([ask("", "application/json").then((r) => r.json()), ask("/file.html", "text/html").then((r) => r.text())]);
    show(readout, file);
  } catch (error) { refuse(error); }
}

main.replaceChildren(make("p", { class: "loading" }, "Loading the readout …"));
load();
