import { describe, expect, test } from "@jest/globals";
import { suggestions } from "./suggestion.ts";

const KNOWN = [
  "/service.v1.ProjectService/GetProject",
  "/service.v1.ProjectService/ListProjects",
  "/service.v1.WorkflowService/StartWorkflow",
  "/grpc.health.v1.Health/Check",
];

const suggestionFor = suggestions(KNOWN);

describe("a path that no operation has", () => {
  test.each([
    ["/service.v1.ProjectService/ListProject", "service.v1.ProjectService/ListProjects"],
    ["/service.v1.ProjectService/getproject", "service.v1.ProjectService/GetProject"],
    ["/service.v1.ProjectsService/GetProjct", "service.v1.ProjectService/GetProject"],
    ["/v1.WorkflowService/StartWorkflow", "service.v1.WorkflowService/StartWorkflow"],
    ["/ProjectService/ListProjects", "service.v1.ProjectService/ListProjects"],
  ])("%s means %s", (path, operation) => {
    expect(suggestionFor(path)).toBe(operation);
  });

  test.each([
    "/",
    "",
    "/a",
    "/favicon.ico",
    "/wp-login.php",
    `/service.v1.ProjectService/${"GetProject".repeat(40)}`,
  ])("%s means none", (path) => {
    expect(suggestionFor(path)).toBeUndefined();
  });
});
