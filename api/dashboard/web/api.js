// @ts-check
/** @import { Pairs, ProblemBody, RequestOptions, Response, SharedView } from "./types.d.ts" */

// Requests to the API. The token is stored in the session storage of this tab or, if the reader asks for it, on this
// device. It is sent in a header, and is never part of a URL that is sent to a server.

const key = "lifthouse.token", sharedKey = "lifthouse.shared";

/** onDevice does something with the storage of this device. It returns null if the browser keeps nothing.
 * @param {(storage: Storage) => string | null | void} use */
function onDevice(use) {
  try {
    return use(localStorage) ?? null;
  } catch {
    return null;
  }
}

export const session = {
  get token() { return sessionStorage.getItem(key) ?? onDevice((device) => device.getItem(key)); },
  /** shared is what the page shows if the token is of a share link.
   * @returns {SharedView | undefined} */
  get shared() { return JSON.parse(sessionStorage.getItem(sharedKey) ?? "null") ?? undefined; },
  /** open signs in. A share link is only for this tab, and leaves the token that the device remembers.
   * @param {string} token
   * @param {{ shared?: SharedView, remember?: boolean }} [options] shared: what a share link shows */
  open(token, { shared, remember } = {}) {
    if (!shared) session.close();
    sessionStorage.setItem(key, token);
    if (shared) sessionStorage.setItem(sharedKey, JSON.stringify(shared));
    if (remember) onDevice((device) => device.setItem(key, token));
  },
  close() {
    if (!session.shared) onDevice((device) => device.removeItem(key));
    sessionStorage.removeItem(key);
    sessionStorage.removeItem(sharedKey);
  },
  /** mayWrite reports whether the token may start and stop, and mayShare whether it may
   * create share links. The server says so with each response. */
  mayWrite: false,
  mayShare: false,
};

/** Problem is an error response, or a request without a response (status 0). */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {ProblemBody} body
   * @param {number} [wait] seconds to wait before the next request
   */
  constructor(status, body, wait = 0) {
    super(body.detail || body.title || "The server returned " + status);
    this.status = status;
    this.title = body.title;
    this.code = body.code;
    this.faults = body.errors || [];
    this.requestId = body.requestId;
    this.wait = wait;
  }
}

/** ask sends a request.
 * @param {string} path
 * @param {RequestOptions} [options]
 * @returns {Promise<Response<any>>} */
export async function ask(path, { method = "GET", body, match, accept = "application/json", etag, signal, token = session.token } = {}) {
  /** @type {Record<string, string>} */
  const headers = { Authorization: "Bearer " + token, Accept: accept + ", application/problem+json;q=0.5" };
  if (etag) headers["If-None-Match"] = etag;
  if (match) headers["If-Match"] = match;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body), credentials: "omit" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, { title: "No response", detail: "The server does not respond. Check that it is running and that you are connected." });
  }
  const scopes = response.headers.get("X-Token-Scopes")?.split(" ");
  if (scopes && token === session.token) {
    session.mayShare = scopes.includes("admin");
    session.mayWrite = session.mayShare || scopes.includes("write");
  }
  if (response.status === 304) return { unchanged: true };
  if (!response.ok) {
    const problem = new Problem(response.status, await response.json().catch(() => ({ title: response.statusText })), Number(response.headers.get("Retry-After")) || 0);
    // The token has expired or was revoked: the page shows the sign-in form.
    if (response.status === 401 && token === session.token) dispatchEvent(new CustomEvent("lifthouse:signed-out", { detail: problem }));
    throw problem;
  }
  const text = accept !== "application/json" || response.status === 204;
  const stale = (response.headers.get("Warning") || "").startsWith("110");
  return { body: text ? await response.text() : await response.json(), stale, etag: response.headers.get("ETag"), total: Number(response.headers.get("X-Total-Count")) };
}

const most = 500; // elements of a page of a list

/** all requests all pages of a list. A list of one page is requested with its ETag.
 * @param {string} path
 * @param {Record<string, string | undefined>} parameters
 * @param {RequestOptions} [options]
 * @returns {Promise<Response<any[]>>} */
export async function all(path, parameters, { etag, signal } = {}) {
  const first = await ask(path + query({ ...parameters, limit: most }), { etag, signal });
  if (first.unchanged || !((first.total ?? 0) > most)) return first;
  const found = first.body;
  for (;;) {
    const page = await ask(path + query({ ...parameters, offset: found.length, limit: most }), { signal });
    found.push(...page.body);
    if (page.body.length === 0 || found.length >= (page.total ?? 0)) return { body: found, total: found.length };
  }
}

/** query encodes parameters as a query string with readable brackets. It omits
 * parameters without a value.
 * @param {Pairs | Record<string, string | number | undefined | null>} parameters */
export function query(parameters) {
  const written = new URLSearchParams();
  for (const [name, value] of Array.isArray(parameters) ? parameters : Object.entries(parameters)) {
    if (value !== undefined && value !== null) written.append(name, String(value));
  }
  const text = written.toString().replaceAll("%5B", "[").replaceAll("%5D", "]");
  return text && "?" + text;
}
