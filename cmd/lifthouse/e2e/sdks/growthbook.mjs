// Sends the events of many visitors with GrowthBook's SDK, each with an instance of its own: node growthbook.mjs ADDRESS
// VISITORS PURCHASES. It prints how many events were sent.
import { GrowthBook } from "@growthbook/growthbook";
import { growthbookTrackingPlugin } from "@growthbook/growthbook/plugins";

const [address, ...numbers] = process.argv.slice(2);
const [visitors, purchases] = numbers.map(Number);
const fetchOf = globalThis.fetch;
let delivered = 0;
let answered = () => {};
globalThis.fetch = async (url, request) => {
  const response = await fetchOf(url, request);
  delivered += JSON.parse(request.body).length;
  answered();
  return response;
};
const experiment = { key: "checkout-layout", variations: [0, 1], meta: [{ key: "control" }, { key: "b" }] };
const visit = (i) => {
  const plugins = [growthbookTrackingPlugin({ ingestorHost: address })];
  const growthbook = new GrowthBook({ clientKey: "own", attributes: { id: "visitor-" + i }, plugins });
  growthbook.run({ ...experiment, weights: i % 2 ? [0, 1] : [1, 0] });
  if (i < purchases) growthbook.logEvent("Order Completed", { order_id: "order-" + i, revenue: (i % 7) + 0.5 });
};
for (let i = 0; i < visitors; i += 100) {
  for (let n = i; n < Math.min(i + 100, visitors); n++) visit(n);
  const wanted = Math.min(i + 100, visitors) + Math.min(i + 100, purchases);
  while (delivered < wanted) await new Promise((done) => (answered = done));
}
process.stdout.write(String(delivered));
process.exit(0);
