import { type DescMethodUnary, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { transport } from "./server.tsx";

/**
 * Calls an operation without its contract, for the first page: loading the contracts of all services whose lists it
 * shows would make the console's first load too large.
 * @param operation such as `RunnerService/ListRunners`
 * @returns the response in the contract's JSON
 */
export async function callJson<T>(operation: string, signal: AbortSignal, request: JsonObject): Promise<T> {
  const [service, name] = operation.split("/");
  const method = {
    ...AgentService.method.listAgentExecutions,
    name,
    parent: { typeName: `service.v1.${service}` },
    input: StructSchema,
    output: StructSchema,
  } as unknown as DescMethodUnary<typeof StructSchema, typeof StructSchema>;
  const { message } = await transport.unary(
    method,
    signal,
    undefined,
    undefined,
    fromJson(StructSchema, request),
  );
  return toJson(StructSchema, message) as T;
}
