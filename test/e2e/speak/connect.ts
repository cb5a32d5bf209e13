import { fromJson, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import { ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { failure, type Speak } from "./outcome.ts";

/** A generated client of Connect over any of its transports. */
export function speakConnect(transport: Transport): Speak {
  const client = createClient(ProjectService, transport);
  return async (operation, request) => {
    const method = ProjectService.methods.find(({ name }) => name === operation);
    if (!method) throw new Error(`ProjectService has no operation ${operation}`);
    const call = client[method.localName as keyof typeof client] as (req: Message) => Promise<Message>;
    try {
      const answer = await call(fromJson(method.input, request as JsonValue));
      return { answer: toJson(method.output, answer, { alwaysEmitImplicit: true }) };
    } catch (thrown) {
      return failure(ConnectError.from(thrown));
    }
  };
}

/** Sends the token with every call. */
export function bearer(token: string): Interceptor {
  return (next) => (req) => {
    req.header.set("authorization", `Bearer ${token}`);
    return next(req);
  };
}
