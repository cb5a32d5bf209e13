import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { ResourceOperation, ResourceType } from "#gen/service/v1/event_pb.js";
import { EventDeliverySchema, EventFormat } from "#gen/service/v1/event_subscription_pb.js";
import { eventBody } from "./event-message.ts";

const event = create(EventDeliverySchema, {
  eventKind: "agent_execution.waits_for_input",
  resourceType: ResourceType.AGENT_EXECUTION,
  resourceId: "0198c0de-0000-7000-8000-000000000001",
  operation: ResourceOperation.UPDATE,
  sequence: 9_007_199_254_740_993n,
  happenedAt: timestampFromMs(Date.UTC(2026, 10, 26, 12)),
});
const place = {
  organizationId: "0198c0de-0000-7000-8000-0000000000aa",
  baseUrl: "https://chartroom.example",
};
const bodyOf = (more: object, format = EventFormat.STANDARD) =>
  JSON.parse(eventBody(format, { ...event, ...more }, place));

describe("the body of an event", () => {
  test("has the form of Standard Webhooks, with ids, kinds and times", () => {
    expect(bodyOf({})).toEqual({
      type: "agent_execution.waits_for_input",
      timestamp: "2026-11-26T12:00:00.000Z",
      data: {
        organizationId: place.organizationId,
        sequence: "9007199254740993",
        operation: "update",
        resourceType: "agent_execution",
        resourceId: event.resourceId,
        url: `https://chartroom.example/agents/${event.resourceId}`,
      },
    });
  });

  test.each([
    [
      "agent_execution.waits_for_input",
      ResourceType.AGENT_EXECUTION,
      "An agent run waits for input",
      "agents",
    ],
    ["agent_execution.failed", ResourceType.AGENT_EXECUTION, "An agent run has failed", "agents"],
    ["approval.asked", ResourceType.APPROVAL, "An approval is asked for", "approvals"],
    [
      "workflow_execution.failed",
      ResourceType.WORKFLOW_EXECUTION,
      "An execution of a workflow has failed",
      "executions",
    ],
    ["project.updated", ResourceType.PROJECT, "Project updated", "projects"],
  ])("of %s is a sentence with a link for chat services", (eventKind, resourceType, sentence, page) => {
    expect(bodyOf({ eventKind, resourceType }, EventFormat.CHAT_TEXT)).toEqual({
      text: `${sentence}: https://chartroom.example/${page}/${event.resourceId}`,
    });
  });

  test("leads to no page of what is gone or has none", () => {
    const events = "https://chartroom.example/organization?tab=events";
    expect(bodyOf({ operation: ResourceOperation.DELETE }).data.url).toBe(events);
    expect(bodyOf({ resourceType: ResourceType.RUNNER }).data.url).toBe(events);
  });
});
