// @ts-check
import assert from "node:assert/strict";
import test from "node:test";
import { terms } from "./help.js";

test("each term is explained in two sentences", () => {
  for (const [name, [title, meaning]] of Object.entries(terms)) {
    const sentences = meaning.match(/[^.]+(\.\d[^.]*)*\./g) ?? [];
    assert.equal(sentences.length, 2, name + ": " + meaning);
    assert.ok(title && meaning.endsWith(".") && meaning.length <= 260, name);
  }
});
