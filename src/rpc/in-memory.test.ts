import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createClient,
  createServiceImplSpec,
  type HandlerContext,
} from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import {
  AgentWorkService,
  type StreamInputsResponse,
  StreamInputsResponseSchema,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { WorkService } from "#gen/runner/v1/work_service_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { RunnerService } from "#gen/service/v1/runner_service_pb.js";
import { leaseLost } from "../domain/error.ts";
import { UNKNOWN } from "../services/call/authenticated-caller.ts";
import { callerOf } from "../services/call/call.ts";
import { createAdmission } from "./access/admission.ts";
import { errorInterceptor } from "./error/error-interceptor.ts";
import { createInMemoryTransport, createJsonCalls } from "./in-memory.ts";
import { createRoutes } from "./routes.ts";

const draining = new AbortController();
const readiness = { problems: () => [], draining: draining.signal };
const asked = Promise.withResolvers<AbortSignal>();
const implementation = {
  heartbeat: (_: unknown, ctx: HandlerContext) => {
    expect(callerOf(ctx).subject.id).toBe("runner-1");
    return { nextWithin: { seconds: 30n } };
  },
  renewLease: () => {
    throw leaseLost();
  },
  leaseWork: async (_: unknown, { signal }: HandlerContext) => {
    asked.resolve(signal);
    await once(signal, "abort");
    signal.throwIfAborted();
    return {};
  },
};
const faulty: unknown[] = [];
const LEASE = "01900000-0000-7000-8000-000000000000";
/** Lengths of two large deliveries with a small one between them. */
const DELIVERIES = [1_500_000, 1, 1_500_001].map((length) =>
  create(StreamInputsResponseSchema, {
    input: {
      id: String(length),
      input: {
        case: "userInput",
        value: { inputs: [{ input: { case: "image", value: { data: new Uint8Array(length) } } }] },
      },
    },
  }),
);
const routes = createRoutes({
  implementations: [
    createServiceImplSpec<typeof WorkService>(WorkService, implementation),
    createServiceImplSpec<typeof AgentWorkService>(AgentWorkService, {
      async *streamInputs() {
        yield* DELIVERIES;
      },
    }),
  ],
  interceptors: [errorInterceptor((error) => faulty.push(error))],
  readiness,
  allowUnknownFields: false,
});
const admission = createAdmission(
  async (authorization) =>
    authorization === "Bearer good"
      ? {
          kind: "known",
          caller: {
            organizationId: "organization-1",
            subject: create(SubjectSchema, { id: "runner-1", principal: Principal.RUNNER }),
            role: "runner",
            accountId: "",
            tokenId: "token-1",
            readOnly: false,
          },
        }
      : UNKNOWN,
  readiness,
);
const transport = createInMemoryTransport({ routes, admission, newId: () => "request-1" });
const callJson = createJsonCalls(admission, () => {
  throw new Error("no request here is large");
});
const work = createClient(WorkService, transport);
const good = { headers: { authorization: "Bearer good" } };
const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error) => ConnectError.from(error).code,
  );

test("a call with a good token reaches its operation as the token's caller", async () => {
  expect((await work.heartbeat({}, good)).nextWithin?.seconds).toBe(30n);
});

test("large messages of a stream are handed over as they are, the others by their bytes", async () => {
  const client = createClient(AgentWorkService, transport);
  const received: StreamInputsResponse[] = [];
  for await (const delivery of client.streamInputs({ leaseId: LEASE, fence: 1n }, good))
    received.push(delivery);
  expect(received).toEqual(DELIVERIES);
  expect(received.map((message, index) => message === DELIVERIES[index])).toEqual([true, false, true]);
});

test("a call without a token, or with another, reaches none", async () => {
  expect(await codeOf(work.heartbeat({}))).toBe(Code.Unauthenticated);
  expect(await codeOf(work.heartbeat({}, { headers: { authorization: "Bearer bad" } }))).toBe(
    Code.Unauthenticated,
  );
});

test("a call that the caller's role does not open is refused", async () => {
  expect(await codeOf(createClient(RunnerService, transport).createRunner({}, good))).toBe(
    Code.PermissionDenied,
  );
});

test("a failure comes with its code and its reason", async () => {
  const error = await work.renewLease({ leaseId: "x", fence: 1n }, good).catch(ConnectError.from);
  expect(error).toMatchObject({ code: Code.Aborted, details: [{ type: "service.v1.ErrorDetail" }] });
  expect(faulty).toEqual([]);
});

describe("a call in JSON", () => {
  const answerTo = async (operation: string, json: string, authorization = "Bearer good") => {
    const route = routes.get(`/${operation}`);
    if (!route) throw new Error(`there is no ${operation}`);
    const record = { requestId: "request-1", operation: "" };
    const { status, body } = await callJson(route, {
      ...{ authorization, record },
      json: Buffer.from(json),
      signal: new AbortController().signal,
    });
    const chunks: Uint8Array[] = [];
    for await (const chunk of body ?? []) chunks.push(chunk);
    return { status, body: JSON.parse(Buffer.concat(chunks).toString()), named: record.operation };
  };
  const HEARTBEAT = "runner.v1.WorkService/Heartbeat";

  test("reaches its operation as the token's caller, and names it in the record", async () => {
    expect(await answerTo(HEARTBEAT, "{}")).toMatchObject({
      status: 200,
      body: { nextWithin: "30s" },
      named: HEARTBEAT,
    });
  });

  test("passes the checks of every other", async () => {
    const codeFor = async (...call: Parameters<typeof answerTo>) => (await answerTo(...call)).body.code;
    expect(await codeFor(HEARTBEAT, "{}", "Bearer bad")).toBe("unauthenticated");
    expect(await codeFor("service.v1.RunnerService/CreateRunner", "{}")).toBe("permission_denied");
    expect(await codeFor(HEARTBEAT, '{"unknown": 1}')).toBe("invalid_argument");
    expect(await codeFor("runner.v1.WorkService/RenewLease", "{}")).toBe("aborted");
    expect(faulty).toEqual([]);
  });

  test("has no more parts than a request of its operation can have", async () => {
    const nested = `{"a":${"[".repeat(500)}${"]".repeat(500)}}`;
    await expect(answerTo(HEARTBEAT, nested)).rejects.toMatchObject({ code: Code.InvalidArgument });
  });
});

test("a call that is given up ends, and its operation's signal is aborted", async () => {
  const giveUp = new AbortController();
  const call = codeOf(work.leaseWork({ maxLeases: 1 }, { ...good, signal: giveUp.signal }));
  const signal = await asked.promise;
  expect(signal.aborted).toBe(false);
  giveUp.abort();
  expect(await call).toBe(Code.Canceled);
  expect([signal.aborted, faulty]).toEqual([true, []]);
});

test("once the server drains, calls are turned away", async () => {
  draining.abort();
  expect(await codeOf(work.heartbeat({}, good))).toBe(Code.Unavailable);
});
