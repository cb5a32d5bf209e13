import type { IncomingMessage, ServerResponse } from "node:http";
import { create, isMessage } from "@bufbuild/protobuf";
import { createContextValues, type Interceptor } from "@connectrpc/connect";
import { expect, test } from "@jest/globals";
import {
  GetProjectRequestSchema,
  GetProjectResponseSchema,
  ProjectService,
} from "#gen/service/v1/project_service_pb.js";
import type { UnaryOperation } from "../rpc/routes.ts";
import { UnaryCall } from "./unary-call.ts";
import { wrapOperation } from "./unary-path.ts";

const method = ProjectService.method.getProject;

async function callThrough(interceptors: readonly Interceptor[]): Promise<object> {
  const implementation = () => ({ project: { id: "an id" } });
  const run = wrapOperation({ method, implementation, interceptors } as unknown as UnaryOperation);
  const req = { headers: {} } as IncomingMessage;
  const call = new UnaryCall(req, {} as ServerResponse, method, createContextValues(), {
    protocolName: "connect",
    timeoutMs: undefined,
  });
  call.message = create(GetProjectRequestSchema);
  return (await run(call)).takeMessage();
}

test("interceptors run from the first to the last, and back", async () => {
  const seen: string[] = [];
  const named =
    (name: string): Interceptor =>
    (next) =>
    async (req) => {
      seen.push(`${name} in`);
      const res = await next(req);
      seen.push(`${name} out`);
      return res;
    };
  const answer = await callThrough([named("first"), named("second")]);
  expect(seen).toEqual(["first in", "second in", "second out", "first out"]);
  expect(isMessage(answer, GetProjectResponseSchema) && answer.project?.id).toBe("an id");
});

test("an interceptor that hands on a copy of the call fails it, as a copy lacks what is made at the first look", async () => {
  const copying: Interceptor = (next) => (req) => next({ ...req });
  await expect(callThrough([copying])).rejects.toThrow("handed on a copy");
});
