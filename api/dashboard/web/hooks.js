// @ts-check
import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "./api.js";

/** @import { Problem } from "./api.js" */
/** @import { RequestOptions, Response } from "./types.d.ts" */

/**
 * @template T
 * @typedef {object} State
 * @property {T} [body]
 * @property {boolean} loading
 * @property {string} [path] path of body
 * @property {Problem} [error]
 * @property {boolean} [stale]
 * @property {number} [total]
 */

/**
 * @template T
 * @typedef {State<T> & { again: () => unknown }} Answer again repeats the request
 */

const often = 5000; // milliseconds between two requests

/** refresh is whether the page repeats its requests. */
export const refresh = {
  paused: false,
  /** @param {boolean} paused */
  pause(paused) {
    refresh.paused = paused;
    if (!paused) document.dispatchEvent(new CustomEvent("visibilitychange")); // all requests are repeated now
  },
};

/**
 * @template T
 * @param {number | ((body: T | undefined) => number)} every
 * @param {T | undefined} body
 */
const pause = (every, body) => (typeof every === "number" ? every : every(body));

/**
 * useAnswer requests a path repeatedly and returns the latest response. After a
 * temporary error it retries when the server permits. The last response remains
 * until a newer one replaces it, so that the page does not flicker. An error is
 * returned in addition to it.
 * @template [T=any]
 * @param {string | undefined | false} path undefined or false: no request
 * @param {{ request?: (path: string, options: RequestOptions) => Promise<Response<T>>, every?: number | ((body: T | undefined) => number) }} [options]
 * @returns {Answer<T>}
 */
export function useAnswer(path, { request = ask, every = often } = {}) {
  const [state, set] = useState(/** @type {State<T>} */ ({ loading: true }));
  const again = useRef(/** @type {() => unknown} */ (() => {}));
  useEffect(() => {
    if (!path) return undefined;
    const aborted = new AbortController();
    /** @type {string | null | undefined} */
    let etag;
    /** @type {number | undefined} */
    let timer;
    let hopeless = false, wait = often;
    /** @type {T | undefined} */
    let last;
    const look = async () => {
      clearTimeout(timer);
      hopeless = false;
      if (!document.hidden) {
        try {
          const answer = await request(path, { etag, signal: aborted.signal });
          if (!answer.unchanged) [etag, last] = [answer.stale ? undefined : answer.etag, answer.body];
          wait = pause(every, last);
          set((was) => ({ ...(answer.unchanged ? was : answer), path, loading: false, error: undefined }));
        } catch (thrown) {
          const error = /** @type {Problem} */ (thrown);
          if (aborted.signal.aborted) return;
          wait = Math.max(1000 * (error.wait || 0), Math.min(pause(every, last), often));
          hopeless = error.status === 400 || error.status === 404; // a retry cannot succeed
          set((was) => ({ ...was, loading: false, error, body: was.path === path ? was.body : undefined }));
        }
      }
      if (!aborted.signal.aborted && !hopeless) timer = setTimeout(repeat, wait);
    };
    const repeat = () => { if (refresh.paused) timer = setTimeout(repeat, wait); else look(); };
    again.current = look;
    set((was) => ({ ...was, loading: true, error: undefined }));
    look();
    const shown = () => { if (!document.hidden && !refresh.paused) look(); };
    document.addEventListener("visibilitychange", shown);
    return () => {
      aborted.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [path]);
  return { ...state, again: () => again.current() };
}

/** useOpened reports whether details have been opened, and returns their handler.
 * @returns {[boolean, (event: { currentTarget: { open: boolean } }) => void]} */
export function useOpened() {
  const [opened, set] = useState(false);
  return [opened, (event) => { if (event.currentTarget.open) set(true); }];
}

/** useTheme reports whether the system uses a dark theme. */
export function useTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const [theme, set] = useState(dark.matches);
  useEffect(() => {
    const changed = () => set(dark.matches);
    dark.addEventListener("change", changed);
    return () => dark.removeEventListener("change", changed);
  }, []);
  return theme;
}
