import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** The data folder that a peer was started with. */
export function dataFolder(): string {
  const [, , dataDir] = process.argv;
  if (dataDir === undefined) throw new Error("a peer is started with its data folder");
  return dataDir;
}

/** The database that a peer was started with; undefined for SQLite in the data folder. */
export function databaseUrl(): string | undefined {
  return process.argv[3];
}

/** Listens on a free port and says so in the words of the server. */
export function serve(server: Server): void {
  server.listen(0, "127.0.0.1", () => tellReady((server.address() as AddressInfo).port));
}

export function tellReady(port: number): void {
  // With no more to it: profiles are written when the process ends in order.
  process.on("SIGTERM", () => process.exit(0));
  process.stdout.write(`Chartroom is ready at http://127.0.0.1:${port}\n`);
}
