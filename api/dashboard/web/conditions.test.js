// Tests of the conditions of visitors that filters write. Run: node --test api/dashboard/web
import assert from "node:assert/strict";
import test from "node:test";
import { compared, joined, termsOf, worded } from "./conditions.js";

test("comparisons are joined by and", () => assert.equal(joined("a = 'x'", "b != 'y'"), "a = 'x' and b != 'y'"));
test("the first comparison is the condition", () => assert.equal(joined(undefined, "b != 'y'"), "b != 'y'"));
test("a condition with or is one term", () => assert.equal(joined("a = 'x' or a = 'z'", "b != 'y'"), "(a = 'x' or a = 'z') and b != 'y'"));
test("a text or parentheses may have keywords", () => assert.deepEqual(termsOf("a = 'x and y' and (b = 'c' or b = 'd')"), ["a = 'x and y'", "(b = 'c' or b = 'd')"]));

test("a quote is doubled", () => assert.equal(compared("city", "L'Aquila", true), "city != 'L''Aquila'"));
test("an asterisk is a pattern", () => assert.equal(compared("plan", "pro*", true), "plan not like 'pro*'"));

test("a comparison is words", () => assert.equal(worded("city != 'L''Aquila'"), "City: not L'Aquila"));
test("an own attribute has its name", () => assert.equal(worded("plan = 'pro'"), "plan: pro"));
test("not empty is set", () => assert.equal(worded("plan != ''"), "plan: set"));
test("other conditions remain", () => assert.equal(worded("device in ('a', 'b')"), "device in ('a', 'b')"));
