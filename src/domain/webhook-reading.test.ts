import { expect, test } from "@jest/globals";
import { WorkflowTrigger_PullRequestEvent as Event } from "#gen/service/v1/workflow_pb.js";
import { GITHUB_PULL_REQUEST, openedPullRequest } from "../../test/harness/webhook-payload.ts";
import { NOTHING_ASKED, readWebhook } from "./webhook-reading.ts";

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));

test("an event of a pull request is one, though its body has parameters too", () => {
  const body = bytes({ ...openedPullRequest(), parameters: { key: "value" } });
  expect(readWebhook(GITHUB_PULL_REQUEST, body)).toMatchObject({
    kind: "pull_request",
    delivery: { events: [Event.OPENED] },
  });
});

test("any other body may carry parameters, also none, whatever event its headers name", () => {
  const parameters = { branch: "main" };
  expect(readWebhook({}, bytes({ parameters }))).toEqual({ kind: "parameters", parameters });
  expect(readWebhook({}, bytes({ parameters: {} }))).toEqual({ kind: "parameters", parameters: {} });
  expect(readWebhook({ "x-github-event": "push" }, bytes({ parameters }))).toEqual({
    kind: "parameters",
    parameters,
  });
});

test("parameters that cannot be read are a problem", () => {
  expect(readWebhook({}, bytes({ parameters: { key: 1 } }))).toEqual({
    kind: "problem",
    problem: "parameters.key must be a text: put it in quotes",
  });
  expect(readWebhook({}, Buffer.from("payload=%7B%7D"))).toMatchObject({ kind: "problem" });
  expect(readWebhook(GITHUB_PULL_REQUEST, Buffer.of(0xff))).toMatchObject({ kind: "problem" });
});

test("the rest asks for nothing, and a host's event says which it was", () => {
  expect(readWebhook({}, new Uint8Array())).toEqual({ kind: "nothing", reason: NOTHING_ASKED });
  expect(readWebhook({}, bytes({ zen: "Keep it simple" }))).toEqual({
    kind: "nothing",
    reason: NOTHING_ASKED,
  });
  expect(readWebhook({ "x-github-event": "ping" }, bytes({ zen: "Keep it simple" }))).toEqual({
    kind: "nothing",
    reason: "a ping: the hook is set up",
  });
  expect(readWebhook(GITHUB_PULL_REQUEST, bytes({ action: "labeled" }))).toEqual({
    kind: "nothing",
    reason: 'the action "labeled" starts nothing',
  });
});
