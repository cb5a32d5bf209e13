import { expect, test } from "@jest/globals";
import { WorkflowTrigger_PullRequestEvent as Event } from "#gen/service/v1/workflow_pb.js";
import { GITHUB_PULL_REQUEST, openedPullRequest } from "../../../../test/harness/webhook-payload.ts";
import { parseDelivery } from "./parsed-delivery.ts";

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));

test("an event of a pull request is one, though its body has parameters too", () => {
  const body = bytes({ ...openedPullRequest(), parameters: { key: "value" } });
  expect(parseDelivery(GITHUB_PULL_REQUEST, body)).toMatchObject({
    kind: "pull_request",
    delivery: { events: [Event.OPENED] },
  });
});

test("every other event of a host starts nothing, though its body has parameters", () => {
  const parameters = { branch: "main" };
  const nothing = (headers: Record<string, string>, body: object, reason: string) =>
    expect(parseDelivery(headers, bytes(body))).toEqual({ kind: "nothing", reason });
  nothing({ "x-github-event": "push" }, { parameters }, 'the event "push" is not about a pull request');
  nothing(
    { "x-gitlab-event": "Push Hook" },
    { parameters },
    'the event "Push Hook" is not about a pull request',
  );
  nothing({ "x-github-event": "ping" }, { zen: "Keep it simple" }, "a ping: the hook is set up");
  nothing(GITHUB_PULL_REQUEST, { action: "labeled", parameters }, 'the action "labeled" starts nothing');
});

test("any other body is a start by hand, with the parameters that it gives", () => {
  const manual = (value: object | null | string) => parseDelivery({}, bytes(value));
  for (const parameters of [{ branch: "main" }, {}]) {
    expect(manual({ parameters })).toEqual({ kind: "manual", parameters, body: { parameters } });
  }
  for (const body of [{}, { zen: "Keep it simple" }, openedPullRequest(), [], null, "parameters"]) {
    expect(manual(body)).toEqual({ kind: "manual", parameters: {}, body });
  }
  expect(parseDelivery({}, new Uint8Array())).toEqual({ kind: "manual", parameters: {}, body: undefined });
});

test("parameters that cannot be read are a problem", () => {
  expect(parseDelivery({}, bytes({ parameters: { key: 1 } }))).toEqual({
    kind: "problem",
    problem: "parameters.key must be a text: put it in quotes",
  });
});

test("what is no JSON is malformed, as an event too", () => {
  for (const body of [Buffer.from("payload=%7B%7D"), Buffer.of(0xff)]) {
    expect(parseDelivery({}, body)).toMatchObject({ kind: "malformed" });
    expect(parseDelivery(GITHUB_PULL_REQUEST, body)).toMatchObject({ kind: "malformed" });
  }
});
