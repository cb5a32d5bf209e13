import { create, type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { ProjectSchema } from "#gen/service/v1/project_pb.js";
import { GetProjectResponseSchema, ListProjectsResponseSchema } from "#gen/service/v1/project_service_pb.js";
import { toBody } from "../../store/json.ts";
import { storedMessage } from "../../store/stored-message.ts";
import { JSON_OPTIONS } from "../request/json-options.ts";
import { responseJson } from "./response-json.ts";

const projects = ["Grüße 🚀", 'a "quoted" name', "plain"].map((name) =>
  create(ProjectSchema, { id: "0190c0de-0000-7000-8000-000000000000", metadata: { name }, usedBy: {} }),
);
const stored = () =>
  projects.map((project) => storedMessage(ProjectSchema, () => toBody(ProjectSchema, project)));

describe("a response of stored resources is the text that its message would be written as", () => {
  test("with one resource alone", () => {
    const [project] = projects;
    const [text] = stored();
    const message = create(GetProjectResponseSchema, { ...(project && { project }) });
    const response = create(GetProjectResponseSchema, { ...(text && { project: text }) });
    expect(responseJson(GetProjectResponseSchema, response)).toBe(
      toJsonString(GetProjectResponseSchema, message, JSON_OPTIONS),
    );
  });

  test.each<[string, MessageInitShape<typeof ListProjectsResponseSchema>]>([
    ["nothing else", {}],
    ["a page", { pagination: { nextToken: "next" } }],
    ["a page and a count", { pagination: {}, count: { value: 3 } }],
  ])("in a list with %s", (_, rest) => {
    for (const count of [0, 1, projects.length]) {
      const response = create(ListProjectsResponseSchema, { ...rest, projects: stored().slice(0, count) });
      const message = create(ListProjectsResponseSchema, { ...rest, projects: projects.slice(0, count) });
      expect(responseJson(ListProjectsResponseSchema, response)).toBe(
        toJsonString(ListProjectsResponseSchema, message, JSON_OPTIONS),
      );
    }
  });

  test("without a field that has none", () => {
    const response = create(GetProjectResponseSchema);
    expect(responseJson(GetProjectResponseSchema, response)).toBe("{}");
  });

  test("copied, and not decoded", () => {
    const project = storedMessage(ProjectSchema, '"no project"');
    const response = create(ListProjectsResponseSchema, { projects: [project, project] });
    expect(responseJson(ListProjectsResponseSchema, response)).toBe(
      '{"projects":["no project","no project"]}',
    );
  });

  test("written from messages where one of them was changed", () => {
    const [first, ...others] = stored();
    if (!first) throw new Error("there are projects");
    if (first.metadata) first.metadata.name = "renamed";
    const response = create(ListProjectsResponseSchema, { projects: [first, ...others] });
    const { projects: written } = JSON.parse(responseJson(ListProjectsResponseSchema, response));
    expect(written.map((project: { metadata: { name: string } }) => project.metadata.name)).toEqual([
      "renamed",
      'a "quoted" name',
      "plain",
    ]);
  });
});
