import { readFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { Ajv2020 } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { Caller, Role } from "../../domain/identity/caller.ts";
import { createRoutes } from "../routes.ts";
import type { ToolDocument } from "./tool-schema.ts";
import { type Tool, Tools, toolsFor } from "./tools.ts";

const FILE = join(import.meta.dirname, "../../../gen/tools.json");
/** What a model reads of all tools with each conversation. */
const MAX_LIST_BYTES = 64 * 1024;

const document = JSON.parse(readFileSync(FILE, "utf8")) as ToolDocument;
const routes = createRoutes({
  implementations: [],
  interceptors: [],
  readiness: { problems: () => [], draining: new AbortController().signal },
  allowUnknownFields: false,
});
const tools = new Tools(routes, document);
const ajv = new Ajv2020({ strict: false, logger: false });
ajvFormats.default(ajv);

const caller = (role: Role, readOnly = false): Caller => ({
  organizationId: "o",
  subject: create(SubjectSchema, { id: "s", principal: Principal.USER }),
  role,
  accountId: "",
  tokenId: "t",
  readOnly,
});
const namesFor = (each: Caller) => toolsFor(each, tools.choose().values()).map(({ name }) => name);
const tool = (name: string, named?: readonly string[]): Tool => {
  const found = tools.choose(named).get(name);
  if (!found) throw new Error(`there is no tool ${name}`);
  return found;
};

describe("the default tools", () => {
  test("are about a dozen, and little to read", () => {
    const chosen = [...tools.choose().values()];
    expect(chosen).toHaveLength(14);
    const list = chosen.map(({ name, title, description, inputSchema }) => ({
      ...{ name, title, description, inputSchema },
    }));
    expect(Buffer.byteLength(JSON.stringify(list))).toBeLessThan(MAX_LIST_BYTES);
  });

  test.each([...tools.choose().values()].map((each) => [each.name, each] as const))(
    "%s says what it does, and has a self-contained schema",
    (name, { description, inputSchema, title }) => {
      expect(name).toMatch(/^[a-z_]{1,64}$/);
      expect([title !== "", description !== "", description.includes("Errors:")]).toEqual([
        true,
        true,
        false,
      ]);
      expect(inputSchema.type).toBe("object");
      // Compiles: no reference leads out of it.
      ajv.compile({ ...inputSchema });
      expect(JSON.stringify(inputSchema)).not.toContain("#/components");
    },
  );

  test("take what the operation takes, with its rules", () => {
    const check = ajv.compile({ ...tool("start_workflow").inputSchema });
    const workflowId = crypto.randomUUID();
    expect(check({ workflowId, parameters: { branch: "main" }, idempotencyKey: "k" })).toBe(true);
    for (const args of [
      {},
      { workflowId: "none" },
      { workflowId, unknown: 1 },
      { workflowId, idempotencyKey: "a b" },
      { workflowId, waitSeconds: 1 },
    ]) {
      expect([args, check(args)]).toEqual([args, false]);
    }
    const send = ajv.compile({ ...tool("send_to_agent_execution").inputSchema });
    const userInput = { inputs: [{ text: { content: "go on" } }] };
    expect(send({ agentExecutionId: workflowId, userInput })).toBe(true);
    expect(send({ agentExecutionId: workflowId })).toBe(false);
  });

  test("are those whose operations the caller may call", () => {
    expect(namesFor(caller("administrator"))).toHaveLength(14);
    expect(namesFor(caller("member"))).toHaveLength(14);
    expect(namesFor(caller("service_account"))).toHaveLength(14);
    expect(namesFor(caller("environment"))).toEqual(["start_agent"]);
    expect(namesFor(caller("environment", true))).toEqual([]);
    expect(namesFor(caller("exchange"))).toEqual([]);
    const changes = toolsFor(caller("member", true), tools.choose().values()).filter(
      ({ isReadOnly }) => !isReadOnly,
    );
    expect(changes).toEqual([]);
  });
});

describe("every operation for clients", () => {
  test("can be a tool, with a name of its own", () => {
    const operations = Object.keys(document.operations);
    const made = operations.map((operation) => {
      const chosen = [...tools.choose([operation.slice("service.v1.".length)]).values()];
      const found = chosen.find(({ route }) => route.operation === operation);
      return [operation, found?.inputSchema.type, found?.name] as const;
    });
    expect(made.filter(([, type]) => type !== "object")).toEqual([]);
    expect(new Set(made.map(([, , name]) => name)).size).toBe(operations.length);
  });

  test("that is named shows all of its request, also where a default tool does not", () => {
    const fields = ({ inputSchema }: Tool) => Object.keys(inputSchema.properties ?? {});
    expect(fields(tool("start_agent"))).not.toContain("annotations");
    expect(fields(tool("start_agent", ["StartAgent"]))).toContain("annotations");
  });
});
