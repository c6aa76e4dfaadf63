// Tests of the computations on series. Run: node --test api/dashboard/web
import assert from "node:assert/strict";
import test from "node:test";
import { dayName } from "./format.js";
import { axisRange, beamsOf, endsOf, increments, marksOf, middlesOf, unitOf } from "./points.js";

const point = (time, ...visitors) => ({ time, variations: visitors.map((n, id) => ({ id, visitors: n, convertedVisitors: n / 10 })) });
const days = [point("2026-01-02T00:00:00Z", 100, 90), point("2026-01-03T00:00:00Z", 250, 90), point("2026-01-04T00:00:00Z", 240, 130)];

test("the unit is the distance of two points", () => {
  assert.equal(unitOf(days), "day");
  assert.equal(unitOf([point("2026-01-02T00:00:00Z"), point("2026-01-02T01:00:00Z")]), "hour");
  assert.equal(unitOf([point("2026-01-05T00:00:00Z"), point("2026-01-12T00:00:00Z")]), "week");
});

test("a bucket of a day has its middle at noon", () => {
  assert.equal(middlesOf(days)[0], Date.parse("2026-01-01T12:00:00Z") / 1000);
  assert.equal(endsOf(days)[0], Date.parse("2026-01-02T00:00:00Z") / 1000);
});

test("increments start from zero and can be negative", () => {
  assert.deepEqual(increments(days, 0, "visitors").map((e) => e.value), [100, 150, -10]);
  assert.deepEqual(increments(days, 1, "convertedVisitors").map((e) => e.value), [9, 0, 4]);
});

test("a variation without counts has no increment", () => {
  const [missing, next] = increments([point("2026-01-02T00:00:00Z", 1), point("2026-01-03T00:00:00Z", 2, 7)], 1, "visitors");
  assert.equal(missing, undefined);
  assert.equal(next.value, 7);
});

const look = (number, end, ...interval) => ({ number, end, variations: [{ id: 1, improvement: { value: 0.1, interval: interval.length ? interval : null } }] });

test("a chart marks the looks within its points, and a next look that is near", () => {
  const looks = [look(1, "2026-01-01T00:00:00Z"), look(2, "2026-01-03T00:00:00Z"), look(3, "2026-01-04T00:00:00Z")];
  const numbers = (nextLook) => marksOf({ looks, nextLook }, days).map((m) => [m.number, m.next]);
  assert.deepEqual(numbers(undefined), [[2, false], [3, false]]);
  assert.deepEqual(numbers({ number: 4, end: "2026-01-06T00:00:00Z" }), [[2, false], [3, false], [4, true]]);
  assert.deepEqual(numbers({ number: 4, end: "2026-01-07T00:00:00Z" }), [[2, false], [3, false]]);
  assert.deepEqual(marksOf({}, days), []);
});

test("looks without an interval have no beam", () => {
  const variations = [{ id: 0 }, { id: 1 }], looks = [look(1, "2026-01-03T00:00:00Z"), look(2, "2026-01-04T00:00:00Z", -0.1, null)];
  assert.deepEqual(beamsOf({ looks, variations }), [{ index: 1, at: Date.parse("2026-01-04T00:00:00Z") / 1000, value: 0.1, interval: [-0.1, null] }]);
  assert.deepEqual(beamsOf({ variations }), []);
});

test("the day of a look is the one that ends with it", () => {
  assert.equal(dayName("2026-11-30T00:00:00Z"), "Monday, 30 November");
});

const entry = (value, ...interval) => ({ value, interval: interval.length ? interval : null });
const stable = Array.from({ length: 18 }, () => entry(0.1, 0, 0.2));

test("wide early intervals do not widen the axis", () => {
  const { low, high, outside } = axisRange([[entry(2, -1, 9), entry(0.3, -0.6, 2), ...stable]], [0]);
  assert.ok(low > -0.25 && low < 0 && high > 0.3 && high < 0.5, `${low} to ${high}`);
  assert.equal(outside, 2);
});

test("an axis is not wider than the data", () => {
  const { low, high, outside } = axisRange([stable]);
  assert.ok(low === 0 && high > 0.2 && high < 0.22, `${low} to ${high}`);
  assert.equal(outside, 0);
});

test("an axis contains the values after the first tenth", () => {
  const { high, outside } = axisRange([[...stable, entry(5), entry(0.1, 0, 0.2)]]);
  assert.ok(high >= 5);
  assert.equal(outside, 0);
});

test("open intervals, missing entries and no values have an axis", () => {
  const { low, high } = axisRange([[undefined, entry(null), entry(0.1, null, 0.4), entry(0.1, -0.1, null)]]);
  assert.ok(low < high && Number.isFinite(low) && Number.isFinite(high));
  assert.deepEqual(axisRange([[undefined]]), { low: 0, high: 1, outside: 0 });
  assert.ok(axisRange([[entry(0)]]).high > 0);
});
