import { type Client, credentials, Metadata } from "@grpc/grpc-js";
import { percentile } from "../figures.ts";
import { projectService } from "../peers/grpc-contract.ts";
import type { LoadResult, LoadTask } from "./task.ts";

type Call = (
  request: object,
  metadata: Metadata,
  done: (error: Error | null, answer?: { project?: { id?: string } }) => void,
) => void;

/** Runs a load of GetProject over gRPC. Like autocannon, each HTTP/2 connection has one call at a time. */
export async function grpcLoad(task: LoadTask): Promise<LoadResult> {
  const Service = projectService();
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${task.token}`);
  const requests = task.requests.map(({ body }) => JSON.parse(body) as object);
  const clients = Array.from(
    { length: task.connections },
    (_, connection) =>
      new Service(new URL(task.url).host, credentials.createInsecure(), {
        // Without this all channels to one address share a connection.
        "grpc.use_local_subchannel_pool": 1,
        "bench.connection": connection,
      }),
  );
  const timesMs: number[] = [];
  let failed = 0;
  let left = task.amount ?? Number.POSITIVE_INFINITY;
  const began = performance.now();
  const endsAt = task.amount === undefined ? began + task.seconds * 1000 : Number.POSITIVE_INFINITY;
  const loop = async (client: Client, connection: number) => {
    const call = (client as unknown as { getProject: Call }).getProject.bind(client);
    for (let count = connection; left-- > 0 && performance.now() < endsAt; count++) {
      const asked = performance.now();
      const request = requests[count % requests.length] ?? {};
      await new Promise<void>((resolve) => {
        call(request, metadata, (error, answer) => {
          if (error || !answer?.project?.id) failed++;
          resolve();
        });
      });
      timesMs.push(performance.now() - asked);
    }
  };
  await Promise.all(clients.map(loop));
  const tookMs = performance.now() - began;
  for (const client of clients) client.close();
  return {
    answered: timesMs.length - failed,
    failed,
    tookMs,
    p50Ms: percentile(timesMs, 50),
    p99Ms: percentile(timesMs, 99),
    longestMs: percentile(timesMs, 100),
  };
}
