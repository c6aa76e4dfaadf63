// @ts-check
// The last questions of a reader, which the browser keeps.

const key = "lifthouse.questions", most = 50;

/** remembered returns the last questions, the latest first.
 * @returns {string[]} */
export function remembered() {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(kept) ? kept.filter((line) => typeof line === "string") : [];
  } catch {
    return []; // the browser keeps nothing, or something else
  }
}

/** remember adds a question.
 * @param {string} line */
export function remember(line) {
  try {
    localStorage.setItem(key, JSON.stringify([line, ...remembered().filter((other) => other !== line)].slice(0, most)));
  } catch { /* the browser keeps nothing */ }
}
