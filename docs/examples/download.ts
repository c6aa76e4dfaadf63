// Downloads a table, and nothing if it is the one that was downloaded before.
import { writeFile } from "node:fs/promises";
import { address, authorization } from "./client.ts";

/** Writes a table such as results.parquet to a file, and returns its ETag. */
export async function download(table: string, path: string, tag?: string): Promise<string | null> {
  const headers: Record<string, string> = { Authorization: authorization };
  if (tag) headers["If-None-Match"] = tag;
  const response = await fetch(`${address}/v1/tables/${table}`, { headers });
  if (response.status === 304) return tag ?? null;
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  await writeFile(path, new Uint8Array(await response.arrayBuffer()));
  return response.headers.get("ETag");
}

const tag = await download("results.parquet", "results.parquet");
const again = await download("results.parquet", "results.parquet", tag ?? undefined);
console.log(tag === again ? "unchanged" : "changed");
