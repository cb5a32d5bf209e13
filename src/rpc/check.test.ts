import { create, createFileRegistry, setExtension } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import {
  FieldRulesSchema,
  field as fieldRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { EventService } from "#gen/service/v1/event_service_pb.js";
import {
  CreateProjectRequestSchema,
  ListProjectsRequestSchema,
  ProjectService,
} from "#gen/service/v1/project_service_pb.js";
import { DomainError } from "../domain/error.ts";
import { ConstraintViolated, checkRequests, createCheck, MAX_VIOLATIONS } from "./check.ts";
import { toConnectError } from "./error/error.ts";
import { errorInterceptor } from "./error/error-interceptor.ts";

const check = createCheck();

/** Returns what the check throws for a message; undefined when it is valid. */
function thrownBy(run: () => void): unknown {
  try {
    run();
    return undefined;
  } catch (error) {
    return error;
  }
}

function violated(run: () => void): ConstraintViolated {
  const thrown = thrownBy(run);
  if (!(thrown instanceof ConstraintViolated)) throw new Error(`no violation: ${thrown}`);
  return thrown;
}

/** Creates a message with one string field that has one CEL rule. */
function messageWithRule(expression: string) {
  const options = create(FieldOptionsSchema);
  const rules = create(FieldRulesSchema, { cel: [{ id: "rule", message: "the rule's words", expression }] });
  setExtension(options, fieldRules, rules);
  const file = create(FileDescriptorProtoSchema, {
    name: "made-up.proto",
    package: "made_up",
    syntax: "proto3",
    messageType: [
      {
        name: "Request",
        field: [
          {
            name: "text",
            jsonName: "text",
            number: 1,
            type: FieldDescriptorProto_Type.STRING,
            label: FieldDescriptorProto_Label.OPTIONAL,
            options,
          },
        ],
      },
    ],
  });
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] }));
  const schema = registry.getMessage("made_up.Request");
  if (!schema) throw new Error("the registry has no such message");
  return schema;
}

describe("a message", () => {
  const initializer = create(EnvironmentInitializerSchema, {
    specs: [{ spec: { case: "git", value: { remoteUri: "https://git.example.org/o/r" } } }],
  });

  test("that keeps every rule passes", () => {
    const message = create(CreateProjectRequestSchema, { name: "harbour", initializer });
    expect(thrownBy(() => check(CreateProjectRequestSchema, message))).toBeUndefined();
  });

  test("that breaks a rule is refused with the rule's own words first, then the field", () => {
    const message = create(CreateProjectRequestSchema, { name: "", initializer });
    expect(violated(() => check(CreateProjectRequestSchema, message))).toMatchObject({
      reason: ErrorReason.CONSTRAINT_VIOLATED,
      message: "name must be between 1 and 80 characters [name]",
      metadata: { violations: "1" },
    });
  });

  test("that breaks several is refused with all of them, in the names of JSON", () => {
    const message = create(CreateProjectRequestSchema, {
      name: "a".repeat(81),
      initializer: { specs: [{}, { spec: { case: "git", value: { remoteUri: "" } } }] },
      automationsFilePath: "/a",
      annotations: { "": "x", team: "y".repeat(513) },
    });
    const { message: text, violations } = violated(() => check(CreateProjectRequestSchema, message));
    expect(violations).toHaveLength(6);
    for (const path of [
      "[name]",
      "[initializer.specs[0].spec]",
      "[initializer.specs[1].git.remoteUri]",
      "[automationsFilePath]",
      '[annotations[""]]',
      '[annotations["team"]]',
    ]) {
      expect(text).toContain(path);
    }
    expect(text).toMatch(/^name must be between 1 and 80 characters \[name\]; /);
  });

  test("that breaks a rule as a whole is refused with the request as the place", () => {
    const violation = violated(() => check(CreateProjectRequestSchema, create(CreateProjectRequestSchema)));
    expect(violation.message).toContain("[initializer]");
    expect(new ConstraintViolated([{ message: "one of both", field: [] } as never]).message).toBe(
      "one of both [request]",
    );
  });

  test.each([
    [MAX_VIOLATIONS, ""],
    [MAX_VIOLATIONS + 1, "; and 1 more"],
    [25, "; and 5 more"],
  ])("with %i broken rules tells 20 at most, and how many there were", (count, rest) => {
    const message = create(ListProjectsRequestSchema, { filter: { projectIds: Array(count).fill("none") } });
    const { message: text, metadata, violations } = violated(() => check(ListProjectsRequestSchema, message));
    expect(violations).toHaveLength(20);
    expect(text.split("; ").filter((part) => part.includes("[filter.projectIds["))).toHaveLength(20);
    expect(text.endsWith(rest || "[filter.projectIds[19]]")).toBe(true);
    expect(metadata).toEqual({ violations: String(count) });
  });
});

describe("a rule of the contract", () => {
  test("made up at run time is held like any other", () => {
    const schema = messageWithRule("this.size() > 2");
    expect(thrownBy(() => check(schema, create(schema, { text: "abc" } as never)))).toBeUndefined();
    expect(violated(() => check(schema, create(schema, { text: "ab" } as never))).message).toBe(
      "the rule's words [text]",
    );
  });

  test.each([
    ["cannot be parsed", "this.size( >"],
    ["names what is not there", "nothing.at.all"],
    ["fails when it runs", "1 / int(this.size()) > 0"],
    ["answers neither true nor false", "this.size()"],
  ])("that %s is a fault of the server and not the caller's", (_, expression) => {
    const schema = messageWithRule(expression);
    const thrown = thrownBy(() => check(schema, create(schema)));
    expect(thrown).toBeDefined();
    expect(thrown).not.toBeInstanceOf(DomainError);
    const reported: unknown[] = [];
    const call = { requestId: "request-1", operation: "made_up.Service/Do" };
    const error = toConnectError(thrown, call, (fault) => reported.push(fault));
    expect([error.code, error.rawMessage]).toEqual([Code.Internal, "internal error"]);
    expect(reported).toEqual([thrown]);
  });
});

describe("before an operation runs", () => {
  test("its request is checked, and a bad one never gets there", async () => {
    let calls = 0;
    const interceptors = [
      errorInterceptor((fault) => {
        throw fault;
      }),
      checkRequests(check),
    ];
    const transport = createRouterTransport(
      ({ rpc }) => {
        rpc(ProjectService.method.getProject, () => {
          calls += 1;
          return {};
        });
      },
      { router: { interceptors } },
    );
    const client = createClient(ProjectService, transport);
    await expect(client.getProject({ projectId: "none" })).rejects.toThrow("[projectId]");
    expect(calls).toBe(0);
    await client.getProject({ projectId: "0192d3c0-0000-7000-8000-000000000001" });
    expect(calls).toBe(1);
  });

  test("every message of a stream is checked when its turn comes, and a bad one ends it", async () => {
    const seen: bigint[] = [];
    const interceptors = [
      errorInterceptor((fault) => {
        throw fault;
      }),
      checkRequests(check),
    ];
    const transport = createRouterTransport(
      ({ rpc }) => {
        rpc(EventService.method.watchEvents, async function* ({ afterSequence }) {
          seen.push(afterSequence ?? -1n);
          yield {};
        });
      },
      { router: { interceptors } },
    );
    const client = createClient(EventService, transport);
    const first = (afterSequence: bigint) =>
      client.watchEvents({ afterSequence })[Symbol.asyncIterator]().next();
    await expect(first(-1n)).rejects.toThrow("[afterSequence]");
    expect(seen).toEqual([]);
    await first(5n);
    expect(seen).toEqual([5n]);
  });
});
