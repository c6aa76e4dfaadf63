// @ts-check
import assert from "node:assert/strict";
import test from "node:test";
import { groupOf, listed, matches, placeOf, sorted } from "./groups.js";

/** @param {string | null} decision @param {object} [more] */
const status = (decision, more = {}) => ({ decision: decision && { status: decision, variationId: null, reasons: [], text: "" }, variationId: null, lift: null, visitors: 1, days: 1, health: [], computedAt: null, ...more });
/** @param {object} more @returns {any} */
const campaign = (more) => listed("campaign", /** @type {any} */ ({ id: 1, name: "One", type: "experiment", active: true, startDate: "2026-01-01", ...more }));

test("each campaign is in one group", () => {
  for (const [group, more] of /** @type {[string, object][]} */ ([
    ["decide", { status: status("ship") }],
    ["decide", { status: status("rollBack", { health: ["SILENT"] }) }],
    ["decide", { status: status("noDifference") }],
    ["decide", { status: status("noWinner") }],
    ["attention", { status: status("invalid") }],
    ["attention", { status: status("ship", { health: ["SAMPLE_RATIO_MISMATCH"] }) }],
    ["running", { status: status("keepRunning", { health: ["SILENT"] }) }],
    ["running", { status: status("keepRunning", { health: ["DECLARED_LATE"] }) }],
    ["waiting", { status: status("keepRunning", { health: ["NO_EVENTS", "DAYS_WITHOUT_VISITORS"] }) }],
    ["running", { status: status(null) }],
    ["running", {}],
    ["computing", { status: status(null, { reason: "NOT_COMPUTED" }) }],
    ["done", { active: false, status: status("ship") }],
    ["done", { active: false, status: status("noWinner") }],
    ["notStarted", { active: false, startDate: undefined }],
  ])) assert.equal(groupOf(campaign(more)), group, JSON.stringify(more));
});

test("the row of a widget leads to the experiment with its decision", () => {
  const widget = listed("widget", /** @type {any} */ ({ id: 7, status: [status("keepRunning", { experimentId: 1 }), status("ship", { experimentId: 2 })] }));
  assert.deepEqual(placeOf(widget), [["widget", 7], ["experiment", 2]]);
  assert.deepEqual(placeOf(listed("widget", /** @type {any} */ ({ id: 8, status: [] }))), [["widget", 8]]);
  assert.deepEqual(placeOf(campaign({ status: status("ship") })), [["campaign", 1]]);
});

test("a widget shows its most urgent experiment", () => {
  const widget = listed("widget", /** @type {any} */ ({ id: 7, status: [status("keepRunning"), status("invalid"), status("ship"), status(null)] }));
  assert.equal(widget.status?.decision?.status, "ship");
  assert.equal(listed("widget", /** @type {any} */ ({ id: 7, status: [] })).status, undefined);
});

test("unknown values are last in both directions", () => {
  const items = [3, null, 1, 2].map((visitors, id) => campaign({ id, status: status(null, { visitors }) }));
  assert.deepEqual(sorted(items, "visitors").map((i) => i.id), [2, 3, 0, 1]);
  assert.deepEqual(sorted(items, "-visitors").map((i) => i.id), [0, 3, 2, 1]);
  assert.deepEqual(sorted(items, "size"), items);
});

test("search looks at names, owners, tags and ids", () => {
  const item = campaign({ id: 12, name: "Free delivery", owner: "Ada", tags: ["q4"] });
  for (const search of ["FREE", "ada", "q4", "12", ""]) assert.ok(matches(item, { search }), search);
  assert.ok(!matches(item, { search: "1" }));
  assert.ok(matches(item, { owner: "Ada", tag: "q4" }));
  assert.ok(!matches(item, { tag: "q" }));
});
