// Requests to the API that this page was served by. The token stands in a
// header and in the session storage of this tab, never in an address.

const key = "lifthouse.token";

export const session = {
  get token() { return sessionStorage.getItem(key); },
  open(token) { sessionStorage.setItem(key, token); },
  close() { sessionStorage.removeItem(key); },
};

// Problem is an answer that refuses, or none at all. It says after how many
// seconds to ask again.
export class Problem extends Error {
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

export async function ask(path, { method = "GET", accept = "application/json", etag, signal, token = session.token } = {}) {
  const headers = { Authorization: "Bearer " + token, Accept: accept + ", application/problem+json;q=0.5" };
  if (etag) headers["If-None-Match"] = etag;
  let response;
  try {
    response = await fetch(path, { method, headers, signal, credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { title: "No response", detail: "The server does not respond. Check that it is running and that you are connected." });
  }
  if (response.status === 304) return { unchanged: true };
  if (!response.ok) {
    const problem = new Problem(response.status, await response.json().catch(() => ({ title: response.statusText })), Number(response.headers.get("Retry-After")) || 0);
    // The token has ended meanwhile: the page asks for another.
    if (response.status === 401 && token === session.token) dispatchEvent(new CustomEvent("lifthouse:signed-out", { detail: problem }));
    throw problem;
  }
  const body = accept === "application/json" ? await response.json() : await response.text();
  const stale = (response.headers.get("Warning") || "").startsWith("110");
  return { body, stale, etag: response.headers.get("ETag"), total: Number(response.headers.get("X-Total-Count")) };
}

// all asks for every page of a list.
export async function all(path, parameters, signal) {
  const found = [];
  for (;;) {
    const page = await ask(path + query({ ...parameters, offset: found.length, limit: 500 }), { signal });
    found.push(...page.body);
    if (page.body.length === 0 || found.length >= page.total) return { body: found, total: found.length };
  }
}

// query writes parameters; brackets stay readable, and those without a value
// are left out.
export function query(parameters) {
  const written = new URLSearchParams();
  for (const [name, value] of parameters instanceof Array ? parameters : Object.entries(parameters)) {
    if (value !== undefined && value !== null) written.append(name, value);
  }
  const text = written.toString().replaceAll("%5B", "[").replaceAll("%5D", "]");
  return text && "?" + text;
}
