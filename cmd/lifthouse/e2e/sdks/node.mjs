// Sends a view, a goal and events of no use with each SDK for Node: node node.mjs ADDRESSES, which is JSON with the
// address of a source for each SDK.
import { Analytics } from "@segment/analytics-node";
import RudderAnalytics from "@rudderstack/rudder-sdk-node";
import { PostHog } from "posthog-node";
import { GrowthBook } from "@growthbook/growthbook";
import { growthbookTrackingPlugin } from "@growthbook/growthbook/plugins";

const to = JSON.parse(process.argv[2]);
const viewed = (variation) => ({ experiment_id: "checkout-layout", variation_id: variation });

const address = new URL(to.segment);
const segment = new Analytics({ writeKey: "own", host: address.origin, path: address.pathname, flushAt: 10 });
segment.track({ anonymousId: "anon-1", event: "Experiment Viewed", properties: viewed("b") });
segment.identify({ anonymousId: "anon-1", userId: "u-1" });
segment.alias({ userId: "u-1", previousId: "anon-1" });
segment.page({ anonymousId: "anon-1", name: "Home" });
segment.track({
  anonymousId: "anon-1", userId: "u-1", event: "Order Completed", properties: { order_id: "1001", revenue: 25 },
});
await segment.closeAndFlush({ timeout: 60_000 });

const rudder = new RudderAnalytics("own", { dataPlaneUrl: to.rudderstack, flushAt: 10, flushInterval: 100 });
rudder.track({ anonymousId: "anon-2", event: "Experiment Viewed", properties: viewed("control") });
rudder.identify({ anonymousId: "anon-2", userId: "u-2" });
rudder.track({
  anonymousId: "anon-2", userId: "u-2", event: "Order Completed", properties: { order_id: "1002", revenue: 26 },
});
await new Promise((done) => rudder.flush(done));

const posthog = new PostHog("own", { host: to.posthog, flushAt: 10 });
posthog.capture({
  distinctId: "anon-3", event: "$feature_flag_called",
  properties: { $feature_flag: "checkout-layout", $feature_flag_response: "b" },
});
posthog.alias({ distinctId: "u-3", alias: "anon-3" });
posthog.identify({ distinctId: "u-3" });
posthog.capture({ distinctId: "anon-3", event: "order completed", properties: { order_id: "1003", revenue: 27 } });
await posthog.shutdown();

// GrowthBook repeats no view, and sends every call of logEvent. It has no function that waits for its request.
const fetchOf = globalThis.fetch;
const sent = new Promise((done) => {
  globalThis.fetch = (...request) => fetchOf(...request).finally(done);
});
const growthbook = new GrowthBook({
  clientKey: "own", attributes: { id: "anon-4" },
  plugins: [growthbookTrackingPlugin({ ingestorHost: to.growthbook })],
});
const experiment = {
  key: "checkout-layout", variations: [0, 1], meta: [{ key: "control" }, { key: "b" }], weights: [0, 1],
};
growthbook.run(experiment);
growthbook.run(experiment);
for (let i = 0; i < 3; i++) growthbook.logEvent("Order Completed", { revenue: 28, order_id: "1004" });
growthbook.logEvent("add_to_cart", { price: 5 });
growthbook.logEvent("add_to_cart", { price: 5 });
growthbook.logEvent("page", {});
await sent;
growthbook.destroy();
process.exit(0);
