import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { HostAuthenticationTokenSource as Source } from "#gen/service/v1/runner_configuration_pb.js";
import { type ScmHost, startScmHost } from "../../../test/harness/scm-host.ts";
import { createSourceControl } from "../../scm/source-control.ts";
import type { Assignment } from "../protocol/assignment.ts";
import { findPullRequestHost, openAtHost } from "./pull-request-host.ts";

let host: ScmHost;
let remoteUri: string;
beforeAll(async () => {
  host = await startScmHost({ kind: "github" });
  remoteUri = host.addRepository("team/hello");
});
afterAll(() => host.stop());

const signal = new AbortController().signal;
const scm = () => createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
/** The part of an assignment that these tests need. */
const assignment = (token?: string) =>
  ({
    tools: { scm: scm(), git: { remotes: { allowPrivateAddresses: true, allowFiles: true } } },
    credentialFor: async () => token && { token, source: Source.PAT },
  }) as unknown as Assignment;
const hostOf = (remote: string, token?: string) =>
  findPullRequestHost(assignment(token), { remoteUri: remote, location: "" }, signal);

test("the host of a remote is asked with the executor's token", async () => {
  expect(await hostOf(remoteUri, "secret")).toEqual({ host: host.host, token: "secret" });
});

test("without a token a host that knows pull requests is a failure that says what to store", async () => {
  await expect(hostOf(remoteUri)).rejects.toMatchObject({
    reason: "credential_missing",
    message: expect.stringContaining(`store a host authentication token of the executor for it`),
    retriable: false,
  });
});

test("a folder of the machine knows no pull requests", async () => {
  expect(await hostOf("file:///srv/git/hello.git", "secret")).toBeUndefined();
});

test("a host where nobody speaks of pull requests needs no token", async () => {
  expect(await hostOf("ssh://git@127.0.0.1:1/team/hello.git")).toBeUndefined();
});

const proposal = { title: "T", description: "", branch: "b", base: "main", draft: false };

test("a host that is out of order is asked again, and no more than it is worth", async () => {
  const before = host.requests.length;
  host.fail({ status: 502 }, { times: 4 });
  const opening = openAtHost(
    scm(),
    { host: host.host, token: "x" },
    { ...proposal, remote: remoteUri },
    { signal },
  );
  await expect(opening).rejects.toMatchObject({ reason: "scm_unavailable", retriable: true });
  expect(host.requests.length - before).toBeGreaterThanOrEqual(4);
});

test("what a host refuses is not asked again", async () => {
  const before = host.requests.length;
  const opening = openAtHost(
    scm(),
    { host: host.host, token: "wrong" },
    { ...proposal, remote: remoteUri },
    { signal },
  );
  await expect(opening).rejects.toMatchObject({ reason: "scm_unauthorized", retriable: false });
  expect(host.requests.slice(before).filter(({ method }) => method === "POST")).toEqual([]);
});

test("waiting for a host ends when the work does", async () => {
  host.fail({ status: 502 }, { times: 1 });
  const end = new AbortController();
  const opening = openAtHost(
    scm(),
    { host: host.host, token: host.token },
    { ...proposal, remote: remoteUri },
    { signal: end.signal },
  );
  end.abort(new Error("the work has ended"));
  await expect(opening).rejects.toThrow("the work has ended");
});
