// @ts-check
import "./shared.js";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { all, ask, Problem, session } from "./api.js";
import { Bell } from "./bell.jsx";
import { useAnswer } from "./hooks.js";
import { later } from "./later.jsx";
import { Fault, Loading } from "./parts.jsx";
import { Results } from "./results.jsx";
import { follow, useRoute } from "./route.js";
import { Ended, takeLink } from "./share.jsx";

/** @import { ComponentType, TargetedSubmitEvent } from "preact" */
/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, Item, Website } from "./types.d.ts" */

/** Logo is the mark: a house whose front is an interval with its estimate. */
const Logo = () => (
  <svg class="logo" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
    <path d="M16 2 30 13v15a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2V13z" />
    <path class="line" d="M8 20h16M8 16v8M24 16v8" /><circle cx="18" cy="20" r="3.2" />
  </svg>
);

/** @param {{ done: () => void, said?: Problem }} props */
function SignIn({ done, said }) {
  const [error, setError] = useState(said);
  const [busy, setBusy] = useState(false);
  /** @param {TargetedSubmitEvent<HTMLFormElement>} event */
  const enter = async (event) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget), token = String(given.get("token")).trim();
    setBusy(true);
    try {
      await ask("/v1/websites", { token });
      session.open(token, { remember: given.has("remember") });
      done();
    } catch (refused) {
      setError(/** @type {Problem} */ (refused));
      setBusy(false);
    }
  };
  return (
    <main class="sign-in" id="main">
      <h1 class="brand"><Logo />Lifthouse</h1>
      <p>Sign in with a token. This tab keeps the token until you close it or sign out.</p>
      <form onSubmit={enter}>
        <label>Token <input name="token" type="password" required autocomplete="off" spellcheck={false} autofocus placeholder="lh_…" /></label>
        <label class="inline check"><input name="remember" type="checkbox" /> Remember me on this device</label>
        <button type="submit" class="strong" disabled={busy}>Sign in</button>
      </form>
      {error && <Fault error={error} />}
      <p class="quiet">No token yet? Create one with <code>lifthouse token create --scope read</code>. Use <code>--scope write</code> to start and stop campaigns and widgets, and <code>--scope admin</code> also to share pages.</p>
    </main>
  );
}

/** Keyed opens the campaign whose key the address has in the place of its id.
 * @param {{ route: Route, go: Go }} props */
function Keyed({ route, go }) {
  const key = route.get("campaign"), websiteId = route.get("websiteId");
  /** @type {Answer<Item[]>} */
  const { body, error, again } = useAnswer("/v1/campaigns", { request: (path, options) => all(path, { websiteId }, options) });
  const found = body?.filter((campaign) => campaign.key === key);
  const id = found?.length === 1 ? String(found[0].id) : "";
  useEffect(() => { if (id) go(route.with("campaign", id), { replace: true }); }, [id]);
  const title = <h1>Campaign {key}</h1>;
  if (error) return <>{title}<Fault error={error} again={again} /></>;
  if (!found || id) return <>{title}<Loading what="the campaign" /></>;
  return <>{title}<Fault error={new Problem(404, { detail: found.length ? `several websites have a campaign with the key ${key}: add websiteId to the address` : `no campaign has the key ${key}` })} /></>;
}

/** The views of a website. The code of some is loaded when they open.
 * @type {Record<string, ComponentType<{ route: Route, go: Go }>>} */
const views = {
  console: later(() => import("./console.jsx").then((m) => m.Console)),
  list: later(() => import("./list.jsx").then((m) => m.List)),
  log: later(() => import("./log.jsx").then((m) => m.LogPage)),
  plan: later(() => import("./plan.jsx").then((m) => m.PlanPage)),
  programme: later(() => import("./programme.jsx").then((m) => m.ProgrammePage)),
  sources: later(() => import("./sources.jsx").then((m) => m.SourcesPage)),
};

const Search = later(() => import("./search.jsx").then((m) => m.Search));

/** Places has the name of the website, with which one goes to another, and the search.
 * @param {{ websites: Website[], route: Route, go: Go }} props */
function Places({ websites, route, go }) {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    /** @param {KeyboardEvent} event */
    const press = (event) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <span class="places">
      {websites.length > 1 && <select name="websiteId" aria-label="Website" value={route.get("websiteId") ?? ""} onChange={(e) => go(e.currentTarget.value ? "/?websiteId=" + e.currentTarget.value : "/")}>
        <option value="">All websites</option>
        {websites.map((w) => <option key={w.id} value={w.id}>{w.domain}</option>)}
      </select>}
      <button type="button" class="find" aria-keyshortcuts="Control+K Meta+K" aria-label="Search Ctrl K" onClick={() => setOpen(true)}><svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><circle cx="7" cy="7" r="4.5" /><path d="m10.5 10.5 4 4" /></svg> <kbd>Ctrl K</kbd></button>
      {open && <Search {...{ websites, go }} onClose={() => setOpen(false)} />}
    </span>
  );
}

function Page() {
  const [route, go] = useRoute();
  const [open, setOpen] = useState(Boolean(session.token));
  const [said, say] = useState(/** @type {Problem | undefined} */ (undefined));
  useEffect(() => {
    /** @param {Event} event */
    const refused = (event) => { say(/** @type {CustomEvent} */ (event).detail); leave(); };
    const linked = () => { if (takeLink()) location.reload(); }; // a link that is opened in this tab
    addEventListener("lifthouse:signed-out", refused);
    addEventListener("hashchange", linked);
    return () => {
      removeEventListener("lifthouse:signed-out", refused);
      removeEventListener("hashchange", linked);
    };
  }, []);
  const leave = () => { if (!session.shared) session.close(); setOpen(false); };
  const shared = session.shared;
  useEffect(() => { if (shared && !route.subject) go(shared.address, { replace: true }); }, [route]);
  /** @type {Answer<Website[]>} */
  const { body: websites = [] } = useAnswer(open && !shared && "/v1/websites", { every: 60000 });
  if (!open && shared) return <Ended signIn={() => { session.close(); say(undefined); go("/", { replace: true }); }} />;
  if (!open) return <SignIn said={said} done={() => { say(undefined); setOpen(true); }} />;
  const isKeyed = !/^\d*$/.test(route.get("campaign") ?? "");
  const subject = route.subject, isStart = websites.length > 1 && !route.get("websiteId"), View = views[route.get("view") ?? (isStart ? "console" : "")] ?? views.list;
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to content</a>
      {shared ? <header class="top"><span class="name"><Logo />Lifthouse</span><span class="quiet">Shared page, read-only</span></header>
        : <header class="top"><a class="name" {...follow(go, "/")}><Logo />Lifthouse</a><Places {...{ websites, route, go }} /><span><Bell go={go} /><a href="/docs">API docs</a> <button type="button" class="sign-out" onClick={() => { say(undefined); leave(); }}>Sign out</button></span></header>}
      <main id="main" tabIndex={-1}>{isKeyed ? <Keyed {...{ route, go }} /> : subject ? <Results key={subject.path} {...{ subject, route, go }} /> : !shared && <View {...{ route, go }} />}</main>
    </>
  );
}

takeLink();
render(<Page />, /** @type {HTMLElement} */ (document.getElementById("page")));
