// Sends the events of many visitors with Segment's SDK for Node: node many.mjs ADDRESS VISITORS PURCHASES. Each visitor
// sees a variation, and the first ones buy. It prints how many events the SDK delivered.
import { Analytics } from "@segment/analytics-node";

const address = new URL(process.argv[2]);
const [visitors, purchases] = process.argv.slice(3).map(Number);
const segment = new Analytics({
  writeKey: "own", host: address.origin, path: address.pathname, flushAt: 20, flushInterval: 200, maxRetries: 100,
});
let delivered = 0;
let waiting = 0;
let drained = () => {};
const done = (error) => {
  if (!error) delivered += 1;
  if ((waiting -= 1) < 1000) drained();
};
const track = (i, event, properties) => {
  waiting += 1;
  segment.track({ anonymousId: "visitor-" + i, event, properties }, done);
};
for (let i = 0; i < visitors; i++) {
  track(i, "Experiment Viewed", { experiment_id: "checkout-layout", variation_id: ["control", "b"][i % 2] });
  if (i < purchases) track(i, "Order Completed", { order_id: "order-" + i, revenue: (i % 7) + 0.5 });
  if (waiting > 2000) await new Promise((ok) => (drained = ok));
}
await segment.closeAndFlush({ timeout: 600_000 });
process.stdout.write(String(delivered));
