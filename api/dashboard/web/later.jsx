// @ts-check
import { useEffect, useState } from "preact/hooks";
import { Problem } from "./api.js";
import { Fault, Loading } from "./parts.jsx";

/** @import { ComponentType } from "preact" */

/** later returns a component whose code is loaded when it is first shown.
 * @template {object} P
 * @param {() => Promise<ComponentType<P>>} load
 * @returns {(props: P) => preact.JSX.Element} */
export function later(load) {
  /** @type {ComponentType<P> | undefined} */
  let Loaded;
  return function Later(props) {
    const [error, setError] = useState(/** @type {Problem | undefined} */ (undefined)), [, show] = useState(false);
    const get = () => {
      setError(undefined);
      load().then((component) => { Loaded = component; show(true); }, () => setError(new Problem(0, { detail: "a part of this page did not arrive. If this remains, reload the page" })));
    };
    useEffect(() => { if (!Loaded) get(); }, []);
    if (Loaded) return <Loaded {...props} />;
    return error ? <Fault error={error} again={get} /> : <Loading what="page" />;
  };
}
