// What the examples use of Node, so that they need no types of it.
declare const process: { argv: string[]; env: Record<string, string | undefined> };

declare module "node:fs/promises" {
  export function writeFile(path: string, data: Uint8Array): Promise<void>;
}
