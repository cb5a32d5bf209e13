import { describe, expect, test } from "@jest/globals";
import { ResourceOperation, ResourceType } from "#gen/service/v1/event_pb.js";
import { dependsOnMoment, EVENT_KINDS, kindFor, requireKnownKinds, resourcesOf } from "./event-kinds.ts";

const run = { resourceType: ResourceType.AGENT_EXECUTION, operation: ResourceOperation.UPDATE };
const project = { resourceType: ResourceType.PROJECT, operation: ResourceOperation.CREATE };

describe("the kinds of a subscription", () => {
  test("are those that events have, and the patterns for several", () => {
    expect(() => requireKnownKinds([...EVENT_KINDS, "*", "project.*"])).not.toThrow();
    for (const kind of ["project.failed", "projects.created", "approval.waits_for_input", "constructor.*"])
      expect(() => requireKnownKinds(["*", kind])).toThrow(`no event has the kind ${kind}`);
  });

  test("name the resources that are read", () => {
    expect(resourcesOf(["project.created", "project.deleted", "approval.asked"])).toEqual([
      ResourceType.PROJECT,
      ResourceType.APPROVAL,
    ]);
    expect(resourcesOf(["project.created", "*"])).toBeUndefined();
  });

  test.each([
    [["project.created"], "project.created"],
    [["project.*"], "project.created"],
    [["*"], "project.created"],
    [["project.updated", "agent.created"], undefined],
  ])("%j give a project that is made as %s", (kinds, kind) => {
    expect(kindFor(kinds, project, undefined)).toBe(kind);
  });

  test.each([
    [["agent_execution.waits_for_input"], "agent_execution.waits_for_input"],
    [["agent_execution.updated"], "agent_execution.updated"],
    [["agent_execution.updated", "agent_execution.waits_for_input"], "agent_execution.waits_for_input"],
    [["*"], "agent_execution.waits_for_input"],
    [["agent_execution.failed"], undefined],
  ])("%j give a run that waits as %s", (kinds, kind) => {
    expect(kindFor(kinds, run, "agent_execution.waits_for_input")).toBe(kind);
  });

  test("tell whether the moment has to be looked for", () => {
    expect(dependsOnMoment(["agent_execution.failed"], run)).toBe(true);
    expect(dependsOnMoment(["agent_execution.*"], run)).toBe(true);
    expect(dependsOnMoment(["agent_execution.updated"], run)).toBe(false);
    expect(dependsOnMoment(["*"], { ...run, operation: ResourceOperation.CREATE })).toBe(false);
    expect(dependsOnMoment(["*"], project)).toBe(false);
  });
});
