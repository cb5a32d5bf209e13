import type { StreamInputsResponse } from "#gen/runner/v1/agent_work_service_pb.js";
import type { Lease } from "../protocol/lease.ts";

/**
 * The inputs of a run in the order of their delivery, each once for this lease:
 * whenever the stream is opened anew, the service hands out again what was not
 * acknowledged.
 */
export async function* agentInputs(
  lease: Lease,
  signal: AbortSignal,
): AsyncGenerator<StreamInputsResponse, void> {
  const taken = new Set<string>();
  const handed = lease.follow((client, name, options) => client.streamInputs(name, options), signal);
  for await (const response of handed) {
    const id = response.input?.id ?? "";
    if (taken.has(id)) continue;
    taken.add(id);
    yield response;
  }
}
