// Follows the results of all campaigns and experiments: each call returns what is current, and asks only for what has
// changed. Keep the state between calls, in a file or a database.
import { client, dataOf, type Item } from "./client.ts";

export interface State {
  since?: string; // X-As-Of of the last request
  items: Record<string, Item>;
}

const keyOf = (item: Item) =>
  item.campaignId === undefined ? `experiment/${item.widgetId}/${item.experimentId}` : `campaign/${item.campaignId}`;

/** Merges what has changed into a state. */
export async function sync(state: State): Promise<State> {
  const items = { ...state.items };
  let since = state.since;
  let after: string | undefined;
  do {
    const answer = await client.GET("/v1/results", {
      params: { query: { field: ["decision", "totals"], ...(state.since && { since: state.since }), ...(after && { after }) } },
    });
    const page = dataOf(answer) as Item[]; // as lines, it would be a text
    if (!after) since = answer.response.headers.get("X-As-Of") ?? since; // of the first page
    for (const item of page) {
      if (item.archived) delete items[keyOf(item)];
      else items[keyOf(item)] = item;
    }
    const last = page.at(-1);
    after = answer.response.headers.has("Link") && last ? keyOf(last) : undefined;
  } while (after);
  return { ...(since && { since }), items };
}

let state = await sync({ items: {} });
state = await sync(state); // a minute later
for (const [key, item] of Object.entries(state.items)) {
  console.log(key, item.name, item.decision?.status ?? "nothing to decide", item.totals?.visitors);
}
