import { expect, test } from "@jest/globals";
import { parseCheckEvent } from "./check-event.ts";

const SHA = "5b1f6f3a9c0d4e8271a6b3c95d20e4f78a9b6c1d";
const URL = "https://git.example.org/team/r";
const repository = { clone_url: `${URL}.git`, html_url: URL, ssh_url: null };
const project = { git_http_url: `${URL}.git`, web_url: URL };

const parse = (headers: Record<string, string>, body: unknown) =>
  parseCheckEvent(headers, Buffer.from(JSON.stringify(body)));

test.each([
  [{ "x-github-event": "status" }, { sha: SHA, repository }],
  [{ "x-github-event": "check_run" }, { check_run: { head_sha: SHA }, repository }],
  [{ "x-github-event": "check_suite" }, { check_suite: { head_sha: SHA }, repository }],
  [{ "x-github-event": "workflow_run" }, { workflow_run: { head_sha: SHA }, repository }],
  [
    { "x-gitea-event": "", "x-gitea-event-type": "status", "x-github-event": "" },
    { sha: SHA, repository },
  ],
  [{ "x-forgejo-event": "status" }, { sha: SHA, repository }],
  [{ "x-gitlab-event": "Pipeline Hook" }, { object_attributes: { sha: SHA }, project }],
])("%j tells of the checks of a commit", (headers, body) => {
  expect(parse(headers as Record<string, string>, body)).toEqual({
    repositoryUrls: [`${URL}.git`, URL],
    headSha: SHA,
  });
});

test.each([
  [{}, { sha: SHA, repository }],
  [{ "x-github-event": "push" }, { sha: SHA, repository }],
  [{ "x-github-event": "status" }, { sha: "main", repository }],
  [{ "x-github-event": "status" }, { sha: SHA, repository: 7 }],
  [{ "x-github-event": "status" }, null],
  [{ "x-github-event": "constructor" }, { sha: SHA, repository }],
  [{ "x-gitlab-event": "Job Hook" }, { object_attributes: { sha: SHA }, project }],
])("%j with %j does not", (headers, body) => {
  expect(parse(headers as Record<string, string>, body)).toBeUndefined();
});

test("a body that is no JSON does not", () => {
  expect(parseCheckEvent({ "x-github-event": "status" }, Buffer.from("payload=1"))).toBeUndefined();
});
