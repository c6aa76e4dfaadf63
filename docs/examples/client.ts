// The client of the examples. Generate its types from your own server, so that they fit it:
//
//   npx openapi-typescript https://results.example.com/openapi.yaml -o lifthouse.d.ts
import createClient from "openapi-fetch";
import type { components, paths } from "./lifthouse.d.ts";

export type Item = components["schemas"]["ResultItem"];

/** The value of an environment variable that must be set. */
function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

export const address = setting("LIFTHOUSE_URL");
export const authorization = `Bearer ${setting("LIFTHOUSE_TOKEN")}`;
export const client = createClient<paths>({ baseUrl: address, headers: { Authorization: authorization } });

/** Returns the data of an answer, or throws the problem, whose errors name each wrong parameter. */
export function dataOf<T>({ data, error, response }: { data?: T; error?: unknown; response: Response }): T {
  if (data === undefined) throw new Error(`${response.status}: ${JSON.stringify(error)}`);
  return data;
}
