// Tests of the lines of questions. Run: node --test api/dashboard/web
import assert from "node:assert/strict";
import test from "node:test";
import { parametersOf, partsOf, placedIn, replaced } from "./line.js";

const texts = (line) => Object.fromEntries(Object.entries(partsOf(line)).map(([name, part]) => [name, part.text]));

test("a line of a metric alone", () => assert.deepEqual(texts(" count(any) "), { metric: "count(any)" }));
test("a line of all parts", () => assert.deepEqual(texts("count(any) for device = 'mobile' by os, country"), { metric: "count(any)", visitors: "device = 'mobile'", dimension: "os, country" }));
test("a keyword in a text begins no part", () => assert.deepEqual(texts("count(a where b = 'it''s for by') split items.product"), { metric: "count(a where b = 'it''s for by')", split: "items.product" }));
test("a keyword before its place begins no part", () => assert.deepEqual(texts("count(any) by os for device = 'a'"), { metric: "count(any)", dimension: "os for device = 'a'" }));
test("a word with a keyword is a word", () => assert.deepEqual(texts("count(for-all) by by_os"), { metric: "count(for-all)", dimension: "by_os" }));
test("a part without text is empty", () => assert.deepEqual(texts("count(any) for"), { metric: "count(any)", visitors: "" }));
test("spaces between attributes are not sent", () => assert.deepEqual(parametersOf(partsOf("count(any) by os , country")), [["metric", "count(any)"], ["dimension", "os,country"]]));

test("an error of a part has its place in the line", () => {
  const parts = partsOf("count('😀') for  devce = 'a'"), at = placedIn(parts, { in: "query", name: "visitors", value: "", detail: "at character 2: unknown" }).at;
  assert.equal([..."count('😀') for  devce = 'a'"].slice(at).join(""), "evce = 'a'");
});
test("an error without a place is at its part", () => assert.deepEqual(placedIn(partsOf("count(any) by x"), { in: "query", name: "dimension", value: "x", detail: "must be one of a" }), { at: 14, text: "must be one of a" }));
test("an error of another parameter has no place", () => assert.equal(placedIn(partsOf("count(any)"), { in: "query", name: "filters[dateTo]", value: "x", detail: "must be a date" }).at, undefined));

test("an offer replaces characters, not code units", () => assert.deepEqual(replaced("'😀' co", 4, 6, "count("), { line: "'😀' count(", at: 10 }));
