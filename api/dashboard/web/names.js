// @ts-check
import { query, session } from "./api.js";
import { useAnswer } from "./hooks.js";

/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Names } from "./types.d.ts" */

const never = 1 << 30;

/** useNames requests the names of a website's goals and attributes, and returns its own attributes, too. A share link
 * cannot.
 * @param {Route} route
 * @returns {{ names: Names | undefined, own: string[] }} */
export function useNames(route) {
  /** @type {Answer<Names>} */
  const { body } = useAnswer(!session.shared && "/v1/names" + query([["websiteId", route.get("websiteId")]]), { every: never });
  return { names: body, own: body?.attributes.flatMap(({ name, own }) => (own ? [name] : [])) ?? [] };
}
