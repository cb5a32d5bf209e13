import { create, type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { ProjectSchema } from "#gen/service/v1/project_pb.js";
import { GetProjectResponseSchema, ListProjectsResponseSchema } from "#gen/service/v1/project_service_pb.js";
import { JSON_OPTIONS } from "../rpc/request/json-options.ts";
import { withStoredText } from "../services/call/stored-text.ts";
import { toBody } from "../store/json.ts";
import { responseJson } from "./connect-form.ts";

const projects = ["Grüße 🚀", 'a "quoted" name', "plain"].map((name) =>
  create(ProjectSchema, { id: "0190c0de-0000-7000-8000-000000000000", metadata: { name }, usedBy: {} }),
);
const texts = projects.map((project) => toBody(ProjectSchema, project));

describe("an answer of stored resources is the text that its message would be written as", () => {
  test("with one resource alone", () => {
    const [project] = projects;
    const [text] = texts;
    const stored = withStoredText({}, "project", { schema: ProjectSchema, texts: text ?? "" });
    const message = create(GetProjectResponseSchema, { ...(project && { project }) });
    expect(responseJson(GetProjectResponseSchema, stored)).toBe(
      toJsonString(GetProjectResponseSchema, message, JSON_OPTIONS),
    );
  });

  test.each<[string, MessageInitShape<typeof ListProjectsResponseSchema>]>([
    ["nothing beside them", {}],
    ["a page", { pagination: { nextToken: "next" } }],
    ["a page and a count", { pagination: {}, count: { value: 3 } }],
  ])("in a list with %s", (_, rest) => {
    for (const count of [0, 1, projects.length]) {
      const stored = withStoredText(rest, "projects", {
        schema: ProjectSchema,
        texts: texts.slice(0, count),
      });
      const message = create(ListProjectsResponseSchema, { ...rest, projects: projects.slice(0, count) });
      expect(responseJson(ListProjectsResponseSchema, stored)).toBe(
        toJsonString(ListProjectsResponseSchema, message, JSON_OPTIONS),
      );
    }
  });

  test("is written from messages when it is a copy, which knows of no texts", () => {
    const stored = withStoredText({}, "projects", { schema: ProjectSchema, texts });
    const copy = create(ListProjectsResponseSchema, { ...stored });
    expect(JSON.parse(responseJson(ListProjectsResponseSchema, copy)).projects).toHaveLength(projects.length);
  });

  test("must have a field of that name", () => {
    const stored = withStoredText({}, "workflows", { schema: ProjectSchema, texts });
    expect(() => responseJson(ListProjectsResponseSchema, stored)).toThrow("no field workflows");
  });
});
