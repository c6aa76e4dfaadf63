// @ts-check
import { useEffect, useState } from "preact/hooks";
import { query } from "./api.js";

/** @import { Go, Link, Pairs, Subject } from "./types.d.ts" */

const places = ["campaign", "widget", "experiment"];
const own = ["interval", "view", "ask", "metric", "split"]; // parameters of the page that a report has not

/** Route is the view that the URL of the page describes: a campaign, widget or
 * experiment, and the parameters of the API request. */
export class Route {
  /** @param {string} search query string */
  constructor(search) { this.pairs = [...new URLSearchParams(search)]; }

  /** @param {string} name */
  get(name) { return this.pairs.find(([n]) => n === name)?.[1]; }
  get address() { return "/" + query(this.pairs); }

  /** with returns a route with new values of a parameter. Without values it removes
   * the parameter.
   * @param {string} name
   * @param {...(string | undefined)} values */
  with(name, ...values) {
    const route = new Route("");
    const given = values.flatMap((v) => (v ? [/** @type {[string, string]} */ ([name, v])] : []));
    const at = this.pairs.findIndex(([n]) => n === name);
    route.pairs = this.pairs.filter(([n]) => n !== name);
    route.pairs.splice(at < 0 ? route.pairs.length : at, 0, ...given);
    return route;
  }

  /** also returns a route with another value of a parameter. An empty value filters
   * by attributes that are not set.
   * @param {string} name
   * @param {string} value */
  also(name, value) {
    const route = new Route("");
    route.pairs = [...this.pairs, [name, value]];
    return route;
  }

  /** without returns a route without a parameter, or without one of its values.
   * @param {string} name
   * @param {string} [value] */
  without(name, value) {
    const route = new Route("");
    route.pairs = this.pairs.filter(([n, v]) => n !== name || (value !== undefined && v !== value));
    return route;
  }

  /** subject is the campaign, widget or experiment. It is undefined for lists.
   * @returns {Subject | undefined} */
  get subject() {
    const [campaign, widget, experiment] = places.map((name) => this.get(name));
    if (campaign) return { kind: "campaign", home: "/v1/campaigns/" + encodeURIComponent(campaign), path: "/v1/campaigns/" + encodeURIComponent(campaign) };
    if (!widget) return undefined;
    const home = "/v1/widgets/" + encodeURIComponent(widget);
    if (!experiment) return { kind: "widget", home, path: home };
    return { kind: "experiment", home, path: home + "/experiments/" + encodeURIComponent(experiment), experiment };
  }

  /** asked are the parameters of the API request. */
  get asked() { return this.pairs.filter(([name]) => !places.includes(name) && !own.includes(name)); }

  /** plain is the same view without filters and settings. */
  get plain() {
    const route = new Route("");
    route.pairs = this.pairs.filter(([name]) => places.includes(name) || name === "websiteId");
    return route;
  }

  /** filters are the parameters that select visitors and dates. */
  get filters() { return this.pairs.filter(([name]) => name.startsWith("filters[") || name === "visitors"); }
}

/** to returns the URL with the given parameters.
 * @param {Pairs} pairs */
export const to = (pairs) => "/" + query(pairs);

/** useRoute returns the current route and a function that changes it.
 * @returns {[Route, Go]} */
export function useRoute() {
  const [route, set] = useState(() => new Route(location.search));
  useEffect(() => {
    const moved = () => set(new Route(location.search));
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  /** @type {Go} */
  const go = (next, { replace } = {}) => {
    const address = typeof next === "string" ? next : next.address;
    history[replace ? "replaceState" : "pushState"](null, "", address);
    set(new Route(location.search));
  };
  return [route, go];
}

/** follow returns the attributes of a link within the page. With a modifier key the
 * browser handles the click.
 * @param {Go} go
 * @param {string} address
 * @returns {Link} */
export function follow(go, address) {
  return {
    href: address,
    onClick: (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      go(address);
      scrollTo(0, 0);
      document.getElementById("main")?.focus({ preventScroll: true }); // the focused element may no longer exist
    },
  };
}
