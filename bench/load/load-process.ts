/** The process that makes load, so that its work is not the server's nor the bench's: answers tasks one by one. */
import { grpcLoad } from "./grpc-load.ts";
import { httpLoad } from "./http-load.ts";
import { pacedLoad } from "./paced-load.ts";
import type { LoadTask } from "./task.ts";

process.on("message", async (task: LoadTask) => {
  const load = task.everyMs !== undefined ? pacedLoad : task.form === "grpc" ? grpcLoad : httpLoad;
  process.send?.(await load(task));
});
