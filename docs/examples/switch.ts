// Stops a campaign and starts it again. Both may be repeated: a repetition changes nothing. The token needs the scope
// write.
import { client, dataOf } from "./client.ts";

const params = { path: { id: Number(process.argv[2] ?? 12) } };
for (const path of ["/v1/campaigns/{id}/stop", "/v1/campaigns/{id}/start"] as const) {
  const campaign = dataOf(await client.POST(path, { params }));
  console.log(campaign.name, campaign.active ? "runs" : "is stopped");
}
