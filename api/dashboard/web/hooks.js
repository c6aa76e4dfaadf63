import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "./api.js";

const often = 5000; // milliseconds between two looks

// useAnswer keeps the answer to a request fresh, and asks again by itself
// after a refusal that may pass, when the server says. What was answered last stays
// until there is something else to show, so that nothing flickers; a refusal
// stands beside it.
export function useAnswer(path, { request = ask, every = often } = {}) {
  const [state, set] = useState({ loading: true });
  const again = useRef(() => {});
  useEffect(() => {
    if (!path) return undefined;
    const aborted = new AbortController();
    let etag, timer, hopeless = false, wait = every;
    const look = async () => {
      clearTimeout(timer);
      [hopeless, wait] = [false, every];
      if (!document.hidden) {
        try {
          const answer = await request(path, { etag, signal: aborted.signal });
          if (!answer.unchanged) etag = answer.stale ? undefined : answer.etag;
          set((was) => ({ ...(answer.unchanged ? was : answer), path, at: new Date(), loading: false, error: undefined }));
        } catch (error) {
          if (aborted.signal.aborted) return;
          wait = Math.max(1000 * (error.wait || 0), Math.min(every, often));
          hopeless = error.status === 400 || error.status === 404; // and will be the next time
          set((was) => ({ ...was, loading: false, error, body: was.path === path ? was.body : undefined }));
        }
      }
      if (!aborted.signal.aborted && !hopeless) timer = setTimeout(look, wait);
    };
    again.current = look;
    set((was) => ({ ...was, loading: true, error: undefined }));
    look();
    const shown = () => { if (!document.hidden) look(); };
    document.addEventListener("visibilitychange", shown);
    return () => {
      aborted.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [path]);
  return { ...state, again: () => again.current() };
}

// useTheme says whether the page is dark, and follows the system.
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
