/** Generates load in a process separate from the server and the bench. Runs one task at a time. */
import { grpcLoad } from "./grpc-load.ts";
import { httpLoad } from "./http-load.ts";
import { pacedLoad } from "./paced-load.ts";
import type { LoadTask } from "./task.ts";

process.on("message", async (task: LoadTask) => {
  const load = task.everyMs !== undefined ? pacedLoad : task.form === "grpc" ? grpcLoad : httpLoad;
  process.send?.(await load(task));
});
