// Compares the formats with those of the engine. engine/result/formats_test.go tests the
// same examples. Run: node --test api/dashboard/web
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { chance, count, decimals, number, percent, percentDecimals, probability, signedPercent } from "./format.js";
import { scaleOf } from "./scale.js";

const examples = JSON.parse(readFileSync(new URL("../../../engine/testdata/formats.json", import.meta.url), "utf8"));

// Go has ordinary spaces.
const plain = (text) => text.replaceAll("\u00a0", " ");

const formats = {
  percent: ({ x, decimals, sign, text }) => [plain((sign ? signedPercent : percent)(x, decimals)), text],
  number: ({ x, decimals, text }) => [number(x, decimals), text],
  probability: ({ p, text }) => [probability(p), text],
  chance: ({ p, text }) => [plain(chance(p)), text],
  grouped: ({ n, text }) => [count(n), text],
  decimals: (e) => [[decimals(e.spread), percentDecimals(e.spread)], [e.decimals, e.percentDecimals]],
  scale: ({ numbers, ticks }) => [scaleOf(numbers, 6).ticks.map((x) => Number(x.toPrecision(12)) + 0), ticks],
};

test("every kind of example has a format", () => assert.deepEqual(Object.keys(examples).sort(), Object.keys(formats).sort()));

for (const [name, format] of Object.entries(formats)) {
  for (const example of examples[name]) {
    test(`${name} of ${JSON.stringify(example)}`, () => {
      const [got, want] = format(example);
      assert.deepEqual(got, want);
    });
  }
}
