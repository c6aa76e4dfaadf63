// Sends a view, a goal and an identify with each SDK for browsers. The page has set addresses, which has that of a source
// for each SDK.
import { AnalyticsBrowser } from "@segment/analytics-next";
import { RudderAnalytics } from "@rudderstack/analytics-js/bundled";
import { GrowthBook } from "@growthbook/growthbook";
import { growthbookTrackingPlugin } from "@growthbook/growthbook/plugins";

const to = window.addresses;
const viewed = { experiment_id: "checkout-layout", variation_id: "b" };

const segment = AnalyticsBrowser.load(
  { writeKey: "own", cdnSettings: { integrations: { "Segment.io": { apiKey: "own" } } } },
  { integrations: { "Segment.io": { apiHost: to.segment.replace("http://", ""), protocol: "http" } } },
);
segment.setAnonymousId("anon-1");
segment.track("Experiment Viewed", viewed);
segment.identify("u-1");
segment.track("Order Completed", { order_id: "1001", revenue: 25 });

const rudder = new RudderAnalytics();
rudder.load("own", to.rudderstack, {
  getSourceConfig: () => ({
    source: { id: "s", name: "s", writeKey: "own", enabled: true, workspaceId: "w", config: {}, destinations: [] },
  }),
});
rudder.setAnonymousId("anon-2");
rudder.track("Experiment Viewed", viewed);
rudder.identify("u-2");
rudder.track("Order Completed", { order_id: "1002", revenue: 26 });

const growthbook = new GrowthBook({
  clientKey: "own", attributes: { id: "anon-4" },
  plugins: [growthbookTrackingPlugin({ ingestorHost: to.growthbook })],
});
growthbook.run({
  key: "checkout-layout", variations: [0, 1], meta: [{ key: "control" }, { key: "b" }], weights: [0, 1],
});
growthbook.logEvent("Order Completed", { revenue: 28, order_id: "1004" });
growthbook.logEvent("page", {});
