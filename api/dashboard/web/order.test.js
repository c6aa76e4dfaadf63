// Tests of the order and the scale of the segments. Run: node --test api/dashboard/web
import assert from "node:assert/strict";
import test from "node:test";
import { reach, sorted } from "./order.js";

const segment = (value, visitors, lift) => ({ cell: { value, totals: { visitors } }, comparison: { improvement: { value: lift, interval: null } } });
const segments = [segment("v10", 300, null), segment("v2", 200, -0.1), segment("(none)", 100, 0.2)];
const values = (order) => sorted(segments, order).map((s) => s.cell.value);

test("values sort by their numbers", () => assert.deepEqual(values({ by: "value", down: false }), ["(none)", "v2", "v10"]));
test("visitors sort in both directions", () => {
  assert.deepEqual(values({ by: "visitors", down: true }), ["v10", "v2", "(none)"]);
  assert.deepEqual(values({ by: "visitors", down: false }), ["(none)", "v2", "v10"]);
});
test("a missing lift is last in both directions", () => {
  assert.deepEqual(values({ by: "lift", down: true }), ["(none)", "v2", "v10"]);
  assert.deepEqual(values({ by: "lift", down: false }), ["v2", "(none)", "v10"]);
});
test("sorting keeps the given list", () => assert.equal(segments[0].cell.value, "v10"));

test("a scale cuts an interval that is much wider than the others", () => {
  const ends = reach([{ value: 0, interval: [-0.1, 0.1] }, { value: 0.1, interval: [0, 0.2] }, { value: 1, interval: [-0.9, 40] }, { value: null, interval: [null, null] }]);
  assert.equal(Math.max(...ends), 1.4);
  assert.ok(Math.min(...ends) >= -0.4);
});
test("no lift has no ends", () => assert.deepEqual(reach([{ value: null, interval: null }]), []));
