import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Returns the data folder that the peer was started with. */
export function dataFolder(): string {
  const [, , dataDir] = process.argv;
  if (dataDir === undefined) throw new Error("a peer is started with its data folder");
  return dataDir;
}

/** Returns the database that the peer was started with; undefined for SQLite in the data folder. */
export function databaseUrl(): string | undefined {
  return process.argv[3];
}

/** Listens on a free port and prints the same line as the server. */
export function serve(server: Server): void {
  server.listen(0, "127.0.0.1", () => tellReady((server.address() as AddressInfo).port));
}

export function tellReady(port: number): void {
  // Node writes profiles only on a regular exit.
  process.on("SIGTERM", () => process.exit(0));
  process.stdout.write(`Chartroom is ready at http://127.0.0.1:${port}\n`);
}
