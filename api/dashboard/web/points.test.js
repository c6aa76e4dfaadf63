// Tests of the computations on series. Run: node --test api/dashboard/web
import assert from "node:assert/strict";
import test from "node:test";
import { axisRange, endsOf, increments, middlesOf, unitOf } from "./points.js";

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
