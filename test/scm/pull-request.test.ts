import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { ScmFailure } from "../../src/scm/failure.ts";
import { createSourceControl, type SourceControl } from "../../src/scm/source-control.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";

let host: ScmHost;
let scm: SourceControl;

const PROPOSAL = {
  title: "Raise the limit",
  description: "As *agreed*.\n\n`docker ps --format '{{.ID}}'`",
  branch: "chartroom/raise-limit",
  base: "main",
  draft: false,
};

const PASSWORD_LINKS = { html_url: "https://a:b@e.org", web_url: "https://a:b@e.org" };

const open = (more: object = {}) =>
  scm.openPullRequest({
    host: host.host,
    remote: `${host.url}/o/r.git`,
    token: host.token,
    ...PROPOSAL,
    ...more,
  });

const failureOf = (call: Promise<unknown>): Promise<ScmFailure> =>
  call.then(
    (value) => {
      throw new Error(`expected a failure, not ${JSON.stringify(value)}`);
    },
    (error) => error,
  );

const isCreation = ({ method }: { method: string }) => method === "POST";

describe.each(["github", "gitlab", "gitea"] as const)("a pull request at a host of kind %s", (kind) => {
  beforeAll(async () => {
    host = await startScmHost({ kind });
    scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
  });
  afterAll(() => host.stop());
  let count = 0;
  let remote = "";
  let repository = "";
  beforeEach(() => {
    count += 1;
    repository = `o/r${count}`;
    remote = host.addRepository(repository);
  });
  const opened = () => host.pullRequests().filter((each) => each.repository === repository);

  test("is opened with all that was given, and its page and number are answered", async () => {
    const answer = await open({ remote });
    expect(opened()).toEqual([
      { ...PROPOSAL, repository, number: 1, url: answer.url, isFromFork: false, state: "open", checks: {} },
    ]);
    expect(answer).toEqual({
      url: expect.stringContaining(`${host.url}/${repository}/`),
      number: 1,
      created: true,
    });
  });

  test("is a draft when asked for", async () => {
    await open({ remote, draft: true });
    expect(opened()).toMatchObject([
      { draft: true, title: expect.stringMatching(/^((Draft|WIP): )?Raise the limit$/) },
    ]);
  });

  test.each([
    ["scp form", () => `git@127.0.0.1:${repository}.git`],
    ["ssh with a port", () => `ssh://git@127.0.0.1:2222/${repository}`],
    ["https with a user", () => `https://user@${host.host}/${repository}.git/`],
  ])("is opened for a remote as %s", async (_, form) => {
    await open({ remote: form() });
    expect(opened()).toHaveLength(1);
  });

  test("that is open already is answered, and left as it is", async () => {
    const first = await open({ remote });
    const second = await open({ remote, title: "Another title", description: "" });
    expect(second).toEqual({ ...first, created: false });
    expect(opened()).toMatchObject([{ title: PROPOSAL.title }]);
  });

  test("that is open into another base is answered, but the one into the same base goes first", async () => {
    host.addPullRequest({ repository, branch: PROPOSAL.branch, base: "release" });
    expect(await open({ remote })).toMatchObject({ number: 1, created: false });
    host.addPullRequest({ repository, branch: PROPOSAL.branch, base: "main" });
    expect(await open({ remote })).toMatchObject({ number: 2, created: false });
  });

  test("that was closed is none: another is opened", async () => {
    await open({ remote });
    host.closePullRequest(repository, 1);
    expect(await open({ remote })).toMatchObject({ number: 2, created: true });
  });

  test("of a fork whose branch has the same name, or of another branch, is another one", async () => {
    host.addPullRequest({ repository, branch: PROPOSAL.branch, base: "main", isFromFork: true });
    host.addPullRequest({ repository, branch: `${PROPOSAL.branch}-2`, base: "main" });
    expect(await open({ remote })).toMatchObject({ number: 3, created: true });
  });

  test("is opened once by many who try at the same time", async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => open({ remote })));
    expect(opened()).toHaveLength(1);
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(answers.map(({ number }) => number))).toEqual(new Set([1]));
  });

  test("that was opened although the answer got lost is found by the next try", async () => {
    host.fail("reset", { when: isCreation });
    expect(await failureOf(open({ remote }))).toMatchObject({ kind: "unavailable", retriable: true });
    // The cut came before it was opened here; a host can also cut after it.
    host.addPullRequest({ repository, branch: PROPOSAL.branch, base: "main" });
    expect(await open({ remote })).toMatchObject({ number: 1, created: false });
  });

  test("that the host finds invalid fails with its words, without the token", async () => {
    host.fail({ status: 422, body: { message: `No commits, ${host.token}` } }, { when: isCreation });
    const failure = await failureOf(open({ remote }));
    expect(failure).toMatchObject({
      name: "ScmFailure",
      kind: "validation",
      retriable: false,
      host: host.host,
    });
    expect(failure.message).toBe(`${host.host} answered 422: No commits, ***`);
    expect(opened()).toEqual([]);
  });

  test.each([
    [401, {}, "unauthorized", undefined],
    [403, {}, "forbidden", undefined],
    [404, {}, "not_found", undefined],
    [429, { "retry-after": "7" }, "rate_limited", 7_000],
    [500, {}, "unavailable", undefined],
    [503, { "retry-after": "3" }, "unavailable", 3_000],
  ])(
    "that the host answers with %i fails with its kind, at either call",
    async (status, headers, kind, wait) => {
      for (const when of [isCreation, () => true]) {
        host.fail({ status, headers, body: { message: "no" } }, { when });
        expect(await failureOf(open({ remote }))).toMatchObject({ kind, retryAfterMs: wait });
      }
      expect(opened()).toEqual([]);
    },
  );

  test.each([
    ["no JSON", { status: 201, body: "<h1>Welcome</h1>" }],
    ["JSON that says it is none", { status: 201, body: {}, headers: { "content-type": "text/plain" } }],
    ["an empty object", { status: 201, body: {} }],
    [
      "no page",
      { status: 201, body: { number: 1, iid: 1, html_url: "javascript:1", web_url: "javascript:1" } },
    ],
    ["a page that shows a password", { status: 201, body: { number: 1, iid: 1, ...PASSWORD_LINKS } }],
    ["no number", { status: 201, body: { iid: "1", html_url: "https://e.org", web_url: "https://e.org" } }],
  ])("that is answered with %s fails as unreadable", async (_, fault) => {
    host.fail(fault, { when: isCreation });
    expect(await failureOf(open({ remote }))).toMatchObject({ kind: "unreadable", retriable: false });
  });

  test("with a token that the host does not take fails as unauthorized", async () => {
    expect(await failureOf(open({ remote, token: "another" }))).toMatchObject({ kind: "unauthorized" });
  });

  test.each(["", "two words", "line\nbreak", "naïve"])(
    "with the token %j is not even asked for",
    async (token) => {
      const before = host.requests.length;
      const failure = await failureOf(open({ remote, token }));
      expect([failure.kind, host.requests.length]).toEqual(["unauthorized", before]);
      if (token !== "") expect(failure.message).not.toContain(token);
    },
  );

  test("of a remote that names no repository of a host fails as not found", async () => {
    expect(await failureOf(open({ remote: "file:///srv/git/r.git" }))).toMatchObject({ kind: "not_found" });
    expect(await failureOf(open({ remote: `${host.url}/o/absent.git` }))).toMatchObject({
      kind: "not_found",
    });
  });

  test("shows the token in one header, never in an address or a body", async () => {
    const before = host.requests.length;
    await open({ remote });
    const seen = host.requests.slice(before);
    expect(seen.map(({ method }) => method)).toEqual(["GET", "POST"]);
    for (const { target, body, headers } of seen) {
      const { authorization, ...others } = headers;
      expect(authorization).toBe(`${kind === "gitea" ? "token" : "Bearer"} ${host.token}`);
      expect(target + body + JSON.stringify(others)).not.toContain(host.token);
    }
  });
});

test("a repository that GitHub renamed is followed to where it is now", async () => {
  host = await startScmHost({ kind: "github" });
  scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
  const remote = host.addRepository("o/old");
  host.renameRepository("o/old", "o/new");
  expect(await open({ remote })).toMatchObject({ number: 1, created: true });
  expect(await open({ remote })).toMatchObject({ number: 1, created: false });
  expect(host.pullRequests()).toMatchObject([{ repository: "o/new" }]);
  await host.stop();
});

test("a filter by branch that GitHub did not apply is applied here", async () => {
  host = await startScmHost({ kind: "github" });
  scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
  const remote = host.addRepository("o/r");
  const repo = { id: 1 };
  const other = {
    number: 7,
    html_url: "https://e.org/7",
    head: { ref: "other", repo },
    base: { ref: "main", repo },
  };
  host.fail({ status: 200, body: [other] }, { when: ({ target }) => target.includes("/pulls?") });
  expect(await open({ remote })).toMatchObject({ number: 1, created: true });
  await host.stop();
});

test("GitHub and Gitea have no nested groups; GitLab has", async () => {
  for (const kind of ["github", "gitlab", "gitea"] as const) {
    host = await startScmHost({ kind });
    scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
    const remote = host.addRepository("group/sub/deep/r");
    if (kind === "gitlab") expect(await open({ remote })).toMatchObject({ created: true });
    else expect(await failureOf(open({ remote }))).toMatchObject({ kind: "not_found" });
    await host.stop();
  }
});

test("one among very many at Gitea is found, over its pages", async () => {
  host = await startScmHost({ kind: "gitea" });
  scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
  const remote = host.addRepository("o/r");
  await open({ remote });
  for (let n = 0; n < 120; n += 1)
    host.addPullRequest({ repository: "o/r", branch: `other-${n}`, base: "main" });
  const before = host.requests.length;
  expect(await open({ remote })).toMatchObject({ number: 1, created: false });
  expect(host.requests.length - before).toBe(3);
  await host.stop();
});

test("Gitea's draft is not marked twice", async () => {
  host = await startScmHost({ kind: "gitea" });
  scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
  const remote = host.addRepository("o/r");
  await open({ remote, title: "[WIP] all of it", draft: true });
  expect(host.pullRequests()).toMatchObject([{ title: "[WIP] all of it", draft: true }]);
  await host.stop();
});

test("GitLab's draft is not marked twice", async () => {
  host = await startScmHost({ kind: "gitlab" });
  scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
  const remote = host.addRepository("o/r");
  await open({ remote, title: "Draft: all of it", draft: true });
  expect(host.pullRequests()).toMatchObject([{ title: "Draft: all of it", draft: true }]);
  await host.stop();
});

test("a host that speaks none of the APIs opens none", async () => {
  host = await startScmHost({ kind: "plain" });
  scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
  const remote = host.addRepository("o/r");
  expect(await failureOf(open({ remote }))).toMatchObject({ kind: "unsupported", retriable: false });
  expect(host.requests.every(({ headers }) => headers.authorization === undefined)).toBe(true);
  await host.stop();
});
