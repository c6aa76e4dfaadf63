import { useEffect, useState } from "preact/hooks";
import { query } from "./api.js";

// Route is what the page's address says: which campaign, widget or experiment,
// and in the API's own words what is asked about it.
const places = ["campaign", "widget", "experiment"];

export class Route {
  constructor(search) { this.pairs = [...new URLSearchParams(search)]; }

  get(name) { return this.pairs.find(([n]) => n === name)?.[1]; }
  all(name) { return this.pairs.filter(([n]) => n === name).map(([, value]) => value); }
  get address() { return "/" + query(this.pairs); }

  // with has other values for a name; none removes it.
  with(name, ...values) {
    const route = new Route("");
    const given = values.filter((v) => v !== undefined && v !== "").map((v) => [name, v]);
    const at = this.pairs.findIndex(([n]) => n === name);
    route.pairs = this.pairs.filter(([n]) => n !== name);
    route.pairs.splice(at < 0 ? route.pairs.length : at, 0, ...given);
    return route;
  }

  // keeping has an empty value, too, which filters for what is not set.
  also(name, value) {
    const route = new Route("");
    route.pairs = [...this.pairs, [name, value]];
    return route;
  }

  without(name, value) {
    const route = new Route("");
    route.pairs = this.pairs.filter(([n, v]) => n !== name || (value !== undefined && v !== value));
    return route;
  }

  // subject is the path of what is looked at in the API; none: the lists.
  get subject() {
    const [campaign, widget, experiment] = places.map((name) => this.get(name));
    if (campaign) return { kind: "campaign", home: "/v1/campaigns/" + encodeURIComponent(campaign), path: "/v1/campaigns/" + encodeURIComponent(campaign) };
    if (!widget) return undefined;
    const home = "/v1/widgets/" + encodeURIComponent(widget);
    if (!experiment) return { kind: "widget", home, path: home };
    return { kind: "experiment", home, path: home + "/experiments/" + encodeURIComponent(experiment), experiment };
  }

  // asked are the parameters of the report, as the API takes them.
  get asked() { return this.pairs.filter(([name]) => !places.includes(name) && name !== "interval"); }

  // plain is the same place with nothing asked about it.
  get plain() {
    const route = new Route("");
    route.pairs = this.pairs.filter(([name]) => places.includes(name) || name === "websiteId");
    return route;
  }

  get filters() { return this.pairs.filter(([name]) => name.startsWith("filters[")); }
}

export const to = (pairs) => "/" + query(pairs);

export function useRoute() {
  const [route, set] = useState(() => new Route(location.search));
  useEffect(() => {
    const moved = () => set(new Route(location.search));
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  const go = (next, { replace } = {}) => {
    const address = typeof next === "string" ? next : next.address;
    history[replace ? "replaceState" : "pushState"](null, "", address);
    set(new Route(location.search));
  };
  return [route, go];
}

// Link moves within the page; with a modifier the browser opens it itself.
export function follow(go, address) {
  return {
    href: address,
    onClick: (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      go(address);
      scrollTo(0, 0);
      document.getElementById("main")?.focus({ preventScroll: true }); // what had the focus may be gone
    },
  };
}
