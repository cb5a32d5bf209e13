import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { basename, dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { MAX_QUESTIONS_OF_CALLER } from "../../src/domain/runner/runner-questions.ts";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { type GitHttpServer, serveGit } from "../harness/git-http-server.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { withRawData } from "../harness/raw-data.ts";
import { type HostedRunner, startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { type ReachableServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

const TOKEN = "token-of-the-member";

type Runner = HostedRunner & { readonly runnerId: string };

let server: ReachableServer;
/** A host whose repositories anybody may read. */
let open: GitHttpServer;
/** A host with the API of GitHub, whose repositories only the token may read. */
let closed: ScmHost;
let origin: BareRepository;
let empty: BareRepository;
let runner: Runner;
/** A runner that reaches public addresses only. */
let careful: Runner;
/** A member with a credential for the closed host at the runner; the administrator has none. */
let member: TestMember;
beforeAll(async () => {
  const folder = temporaryFolder();
  origin = bareRepository(folder, { "a.txt": "one\n" }, "r");
  empty = bareRepository(folder, undefined, "empty");
  origin.commit({ "b.txt": "two\n" }, { branch: "a/b", from: "main" });
  origin.git("tag", "v1", origin.find("main") ?? "");
  origin.git("-c", "user.name=a", "-c", "user.email=a@example.org", "tag", "-a", "v2", "-m", "two", "main");
  origin.git("branch", "both", "a/b");
  origin.git("tag", "both", "main");
  origin.setRef("refs/pull/1/head", origin.find("a/b") ?? "");
  [server, open, closed] = await Promise.all([
    startHostedServer(),
    serveGit(folder),
    startScmHost({ kind: "github", token: TOKEN }),
  ]);
  closed.addRepository("team/app", origin.folder);
  const { organizationId } = await call("IdentityService/GetAuthenticatedIdentity", {});
  member = await addMember(server, { organizationId, email: "member@example.org" });
  const args = ["--allow-private-remotes", "--plain-http-hosts", closed.host];
  [runner, careful] = await Promise.all([
    startRegisteredHostedRunner(server, { args }),
    startRegisteredHostedRunner(server),
  ]);
  await call(
    "RunnerConfigurationService/CreateHostAuthenticationToken",
    { runnerId: runner.runnerId, host: closed.host, token: TOKEN },
    member.token,
  );
  // The streams are open once the first questions are answered.
  for (const { runnerId } of [runner, careful]) {
    await until(
      () => check(pageOf(""), { runnerId }),
      ({ status }) => status === 200,
    );
  }
});
afterAll(async () => {
  await stopRunners();
  await Promise.all([stopAll(), open?.close(), closed?.stop()]);
});

const call = (operation: string, body: object, token = server.token): Promise<Answer["body"]> =>
  succeeded(post(server, operation, body, token));
const check = (repositoryUrl: string, { runnerId = runner.runnerId, token = server.token } = {}) =>
  post(server, "RunnerService/CheckRepositoryAccess", { runnerId, repositoryUrl }, token);
const parse = (contextUrl: string, { runnerId = runner.runnerId, token = server.token } = {}) =>
  post(server, "RunnerService/ParseContextURL", { ...(runnerId && { runnerId }), contextUrl }, token);
const failureOf = (answer: Answer) => [
  answer.body.code,
  reasonOf(answer),
  answer.body.details?.[0]?.debug?.metadata?.cause,
];
const ownerOf = ({ folder }: BareRepository) => basename(dirname(folder));
/** The address of a repository at the open host. */
const urlOf = (repository: BareRepository) =>
  `${open.url}/${ownerOf(repository)}/${basename(repository.folder)}`;
const pageOf = (page: string) => urlOf(origin) + page;

describe("the runner finds", () => {
  test.each([
    ["the default branch of a repository", "", { branch: "main", tag: "" }, "main"],
    ["that of an issue's repository", "/issues/3", { branch: "main", tag: "" }, "main"],
    ["a branch", "/tree/main", { branch: "main", tag: "" }, "main"],
    ["where the name of a branch ends", "/tree/a/b/folder", { branch: "a/b", tag: "" }, "a/b"],
    ["a tag in the place of a branch", "/tree/v1", { branch: "", tag: "v1" }, "main"],
    ["the commit of an annotated tag", "/releases/tag/v2", { branch: "", tag: "v2" }, "main"],
    ["a tag whose name a branch has, too", "/src/tag/both", { branch: "", tag: "both" }, "main"],
    ["where the name of a tag ends", "/src/tag/both/folder", { branch: "", tag: "both" }, "main"],
    ["a pull request", "/pull/1/files", { branch: "", tag: "" }, "a/b"],
  ])("%s", async (_, page, revision, at) => {
    const { status, body } = await parse(pageOf(page));
    expect(status).toBe(200);
    expect(body).toMatchObject({
      originalContextUrl: pageOf(page),
      git: {
        cloneUrl: urlOf(origin),
        host: `127.0.0.1:${open.port}`,
        owner: ownerOf(origin),
        repo: "r",
        commit: origin.find(at),
        ...revision,
      },
      projectIds: [],
    });
  });

  test("a repository without commits", async () => {
    const { body } = await parse(urlOf(empty));
    expect(body.git).toMatchObject({ branch: "", tag: "", commit: "" });
  });

  test("a repository of a commit, which is not looked up", async () => {
    for (const page of ["commit/0A1B2C3D", "tree/0a1b2c3d/folder", "src/commit/0a1b2c3d/a.txt"]) {
      const { body } = await parse(pageOf(`/${page}`));
      expect(body.git).toMatchObject({ branch: "", tag: "", commit: "0a1b2c3d" });
    }
  });

  test("what the host says of a pull request, with the caller's credential", async () => {
    closed.addPullRequest({ repository: "team/app", branch: "a/b", base: "main", title: "Add b" });
    const page = `${closed.url}/team/app/pull/1`;
    const { body } = await parse(`${page}/commits`, { token: member.token });
    expect(body.pullRequest).toMatchObject({
      id: "1",
      title: "Add b",
      fromBranch: "a/b",
      toBranch: "main",
      state: "STATE_OPEN",
      url: page,
      headSha: origin.find("a/b"),
      repository: { cloneUrl: `${closed.url}/team/app`, host: closed.host, owner: "team", name: "app" },
    });
    expect(body.git.commit).toBe(origin.find("a/b"));
  });

  test("a pull request of whose host nothing can be learned", async () => {
    closed.fail({ status: 503 }, { times: 100, when: ({ target }) => target.includes("/pulls/") });
    const { body } = await parse(`${closed.url}/team/app/pull/1`, { token: member.token });
    expect(body.pullRequest).toMatchObject({ id: "1", title: "", headSha: origin.find("a/b") });
  });
});

describe("a remote does not hold a runner up", () => {
  test("with the names of more refs than anybody asked for", async () => {
    const wordy = bareRepository(dirname(dirname(origin.folder)), { "a.txt": "one\n" }, "wordy");
    const commit = wordy.find("main") ?? "";
    const names = Array.from({ length: 5_000 }, (_, index) => `refs/heads/${"x".repeat(200)}${index}/HEAD`);
    const lines = names.toSorted().map((name) => `${commit} ${name}\n`);
    writeFileSync(
      join(wordy.folder, "packed-refs"),
      `# pack-refs with: peeled fully-peeled sorted \n${lines.join("")}`,
    );
    expect(failureOf(await parse(urlOf(wordy)))).toEqual([
      "failed_precondition",
      "REPOSITORY_UNREADABLE",
      "git_failed",
    ]);
  });

  test("by silence, however many callers have hung up meanwhile", async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket.on("error", () => undefined)));
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const repositoryUrl = `http://127.0.0.1:${port}/o/r`;
    for (let asked = 1; asked <= MAX_QUESTIONS_OF_CALLER; asked++) {
      const leaving = new AbortController();
      const left = fetch(`${server.url}/api/service.v1.RunnerService/CheckRepositoryAccess`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${server.token}` },
        body: JSON.stringify({ runnerId: runner.runnerId, repositoryUrl }),
        signal: leaving.signal,
      }).catch((error: Error) => error.name);
      await until(
        async () => sockets.length,
        (count) => count === asked,
      );
      leaving.abort();
      expect(await left).toBe("AbortError");
    }
    expect(reasonOf(await check(repositoryUrl))).toBe("TOO_MANY_QUESTIONS");
    expect(sockets.length).toBe(MAX_QUESTIONS_OF_CALLER);
    silent.close();
    for (const socket of sockets) socket.destroy();
    // Those have ended, and count no more.
    await until(
      () => check(pageOf("")),
      ({ status }) => status === 200,
    );
  });
});

describe("without a runner", () => {
  test("the address alone is read, and nobody is asked", async () => {
    const asked = open.requests.length;
    const { body } = await parse(pageOf("/tree/a/b"), { runnerId: "" });
    expect(body.git).toMatchObject({ repo: "r", branch: "", tag: "", commit: "" });
    const issue = await parse("https://git.example.org/g/s/r/-/issues/7", { runnerId: "" });
    expect(issue.body).toMatchObject({ issue: { id: "7" }, git: { owner: "g/s", repo: "r" } });
    const tag = await parse("https://git.example.org/g/r/-/tags/v1", { runnerId: "" });
    expect(tag.body.git).toMatchObject({ tag: "v1", commit: "" });
    const source = await parse("https://git.example.org/g/r/src/tag/v1", { runnerId: "" });
    expect(source.body.git).toMatchObject({ tag: "v1", commit: "" });
    expect(open.requests.length).toBe(asked);
  });

  test("the projects of the organization that name the repository are found, and of no other", async () => {
    const remotes = ["https://git.example.org/team/app.git", "git@git.example.org:team/app.git"];
    const ids: string[] = [];
    for (const remote of [...remotes, "https://git.example.org/team/other.git"]) {
      const made = await call("ProjectService/CreateProject", { initializer: repository(remote) });
      ids.push(made.project.id);
    }
    const page = "https://git.example.org/team/app/tree/main";
    expect((await parse(page, { runnerId: "" })).body.projectIds).toEqual(ids.slice(0, 2));
    const stranger = await addOrganization(server, "island");
    expect((await parse(page, { runnerId: "", token: stranger.token })).body.projectIds).toEqual([]);
  });
});

describe("a repository can be read", () => {
  test("by everybody where the host lets them", async () => {
    const { body } = await check(pageOf("/tree/main"));
    expect(body).toEqual({ hasAccess: true, errorMessage: "" });
    expect((await check(urlOf(empty))).body.hasAccess).toBe(true);
  });

  test("with the credential of the caller, and not with that of another", async () => {
    const url = `${closed.url}/team/app`;
    expect((await check(url, { token: member.token })).body).toEqual({ hasAccess: true, errorMessage: "" });
    const refused = await check(url);
    expect(refused.body.hasAccess).toBe(false);
    expect(refused.body.errorMessage).toContain(`you have no credential for ${closed.host} at this runner`);
    expect(failureOf(await parse(url))).toEqual([
      "failed_precondition",
      "REPOSITORY_UNREADABLE",
      "credential_withheld",
    ]);
  });

  test("and the credential is in no answer and no log, and its use in the audit trail", async () => {
    const token = member.token;
    const answers = [
      await check(`${closed.url}/team/app`, { token }),
      await check(`${closed.url}/team/none`, { token }),
      await parse(`${closed.url}/team/app`, { token }),
      await parse(`${closed.url}/team/none`, { token }),
    ];
    expect(answers[1]?.body).toMatchObject({ hasAccess: false });
    const texts = [JSON.stringify(answers.map(({ body }) => body)), runner.output()];
    for (const text of texts) {
      expect(text).not.toContain(TOKEN);
      expect(text).not.toContain(Buffer.from(`oauth2:${TOKEN}`).toString("base64"));
    }
    const { entries } = await call("EventService/ListAuditLogs", {
      filter: { actorIds: [runner.runnerId] },
      pagination: { pageSize: 100 },
    });
    expect(JSON.stringify(entries)).toContain("GetQuestionCredential");
  });

  test("only at public addresses, where the runner's operator allows no others", async () => {
    const asked = open.requests.length;
    const { body } = await check(pageOf(""), { runnerId: careful.runnerId });
    expect(body.hasAccess).toBe(false);
    expect(body.errorMessage).toContain("not public");
    expect(failureOf(await parse(pageOf(""), { runnerId: careful.runnerId }))).toEqual([
      "failed_precondition",
      "REPOSITORY_UNREADABLE",
      "remote_refused",
    ]);
    expect(open.requests.length).toBe(asked);
  });
});

describe("an address", () => {
  test.each([
    ["file:///etc/passwd", "VALUE_UNUSABLE"],
    ["ssh://-oProxyCommand=x/o/r", "VALUE_UNUSABLE"],
    ["https://git.example.org/", "VALUE_UNUSABLE"],
    ["https://ada:hunter2hunter2@git.example.org/o/r", "CONSTRAINT_VIOLATED"],
    ["https:///ada:hunter2hunter2@git.example.org/o/r", "VALUE_UNUSABLE"],
    ["no address", "CONSTRAINT_VIOLATED"],
  ])("%s is taken by neither operation", async (address, reason) => {
    for (const answer of [await check(address), await parse(address)]) {
      expect(answer.status).toBe(400);
      expect(reasonOf(answer)).toBe(reason);
      expect(JSON.stringify(answer.body)).not.toContain("hunter2");
    }
  });

  test.each([
    "tree/none",
    "pull/99",
    "releases/tag/none",
    "src/tag/main/x",
    "tree/--output=x",
    "tree/*",
    "tree/a%00b",
  ])("of a revision that the remote does not have is none: %s", async (page) => {
    const answer = await parse(pageOf(`/${page}`));
    expect(failureOf(answer)).toEqual(["failed_precondition", "REPOSITORY_UNREADABLE", "revision_not_found"]);
  });

  test("whose user name may be a token is answered, and asked for, without it", async () => {
    const { body } = await parse(urlOf(origin).replace("//", "//hunter2hunter2@"));
    expect(body.originalContextUrl).toBe(urlOf(origin));
    expect(JSON.stringify(body)).not.toContain("hunter2");
    expect(JSON.stringify(open.requests)).not.toContain("hunter2");
    expect(runner.output()).not.toContain("hunter2");
  });
});

describe("a runner", () => {
  const setPhase = (desiredPhase: string) =>
    call("RunnerService/UpdateRunner", { runnerId: careful.runnerId, spec: { desiredPhase } });
  afterEach(() => setPhase("RUNNER_PHASE_ACTIVE"));

  test("that is paused is not asked, which is said at once", async () => {
    await setPhase("RUNNER_PHASE_INACTIVE");
    for (const answer of [await check(pageOf(""), careful), await parse(pageOf(""), careful)]) {
      expect(failureOf(answer)).toEqual(["failed_precondition", "RUNNER_UNREACHABLE", "runner_paused"]);
    }
  });

  test("that never listens is not asked, which is said at once", async () => {
    const silent = await registerRunner(server);
    expect(failureOf(await check(pageOf(""), { runnerId: silent.runnerId }))).toEqual([
      "failed_precondition",
      "RUNNER_UNREACHABLE",
      "runner_silent",
    ]);
  });

  test("of another organization is not found", async () => {
    const { token } = await addOrganization(server, "reef");
    for (const answer of [await check(pageOf(""), { token }), await parse(pageOf(""), { token })]) {
      expect([answer.status, reasonOf(answer)]).toEqual([404, "NOT_FOUND"]);
    }
  });

  test("that is stopped is not asked, which is said at once", async () => {
    await careful.stop();
    // The server has noticed.
    const streams = () =>
      withRawData(server.dataDir, (raw) =>
        raw.rows<{ id: string; requests_until: number }>("select id, requests_until from runner"),
      );
    await until(streams, (rows) =>
      rows.some((row) => row.id === careful.runnerId && Number(row.requests_until) === 0),
    );
    const answer = await check(pageOf(""), { runnerId: careful.runnerId });
    expect(failureOf(answer)).toEqual(["failed_precondition", "RUNNER_UNREACHABLE", "runner_silent"]);
  });
});
