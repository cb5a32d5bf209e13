import { create, toJsonString } from "@bufbuild/protobuf";
import { createClient, createServiceImplSpec } from "@connectrpc/connect";
import { expect, test } from "@jest/globals";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { type Project, ProjectSchema } from "#gen/service/v1/project_pb.js";
import {
  GetProjectResponseSchema,
  ListProjectsResponseSchema,
  ProjectService,
} from "#gen/service/v1/project_service_pb.js";
import { createAdmission } from "../../rpc/access/admission.ts";
import { createInMemoryTransport } from "../../rpc/in-memory.ts";
import { createRoutes } from "../../rpc/routes.ts";
import { toBody } from "../../store/json.ts";
import { storedTexts, withStoredText } from "./stored-text.ts";

const project = (name: string): Project => create(ProjectSchema, { id: `id-of-${name}`, metadata: { name } });
const text = (name: string): string => toBody(ProjectSchema, project(name));

const one = () => withStoredText({}, "project", { schema: ProjectSchema, texts: text("quay") });
const several = () =>
  withStoredText({ pagination: { nextToken: "next" } }, "projects", {
    schema: ProjectSchema,
    texts: [text("quay"), text("mole")],
  });

test("a response contains the messages of its texts, decoded once", () => {
  const response = one();
  expect(response.project).toEqual(project("quay"));
  expect(response.project).toBe(response.project);
  expect(several().projects).toEqual([project("quay"), project("mole")]);
});

test("nothing is decoded before the field is read", () => {
  const response = withStoredText({}, "project", { schema: ProjectSchema, texts: "no JSON" });
  expect(storedTexts(response)?.texts).toBe("no JSON");
  expect(() => response.project).toThrow();
});

test("the texts are known for the response itself, and not for its copies", () => {
  const response = several();
  expect(storedTexts(response)).toEqual({
    field: "projects",
    texts: [text("quay"), text("mole")],
    rest: { pagination: { nextToken: "next" } },
  });
  expect(storedTexts({ ...response })).toBeUndefined();
  expect(storedTexts(create(ListProjectsResponseSchema, several()))).toBeUndefined();
});

test("every kind of copy has the messages", () => {
  const expected = toJsonString(
    GetProjectResponseSchema,
    create(GetProjectResponseSchema, { project: project("quay") }),
  );
  for (const copy of [one(), { ...one() }, Object.assign({}, one()), structuredClone(one())]) {
    expect(toJsonString(GetProjectResponseSchema, create(GetProjectResponseSchema, copy))).toBe(expected);
  }
  expect(JSON.parse(JSON.stringify(one()))).toMatchObject({ project: { metadata: { name: "quay" } } });
});

test("a handler that does not know stored texts sends the messages", async () => {
  const draining = new AbortController();
  const readiness = { unreadiness: () => undefined, draining: draining.signal };
  const transport = createInMemoryTransport({
    routes: createRoutes({
      implementations: [
        createServiceImplSpec<typeof ProjectService>(ProjectService, {
          getProject: one,
          listProjects: several,
        }),
      ],
      interceptors: [],
      readiness,
      allowUnknownFields: false,
    }),
    admission: createAdmission(
      async () => ({
        kind: "known",
        caller: {
          organizationId: "organization-1",
          subject: create(SubjectSchema, { id: "member-1", principal: Principal.USER }),
          role: "member",
          accountId: "",
          tokenId: "token-1",
          readOnly: false,
        },
      }),
      readiness,
    ),
    newId: () => "request-1",
  });
  const projects = createClient(ProjectService, transport);
  expect((await projects.getProject({})).project).toEqual(project("quay"));
  const listed = await projects.listProjects({});
  expect(listed.projects).toEqual([project("quay"), project("mole")]);
  expect(listed.pagination?.nextToken).toBe("next");
});
