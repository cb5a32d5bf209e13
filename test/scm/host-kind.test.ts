import { createServer } from "node:net";
import { afterEach, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { SCM_LIMITS } from "../../src/scm/settings.ts";
import { createSourceControl } from "../../src/scm/source-control.ts";
import { beginRequestSpan } from "../../src/tracing/request-span.ts";
import type { Span } from "../../src/tracing/span.ts";
import { freePort } from "../harness/free-port.ts";
import { type ScmHost, type ScmHostOptions, startScmHost } from "../harness/scm-host.ts";

const started: ScmHost[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((host) => host.stop()));
});

async function startHost(kind: ScmHostOptions["kind"]) {
  const host = await startScmHost({ kind });
  started.push(host);
  const scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
  return { host, scm };
}

describe("which API a host speaks", () => {
  test.each([
    ["github.com", "github"],
    ["GitHub.com", "github"],
    ["github.example.org:8443", "github"],
    ["gitlab.com", "gitlab"],
    ["code.gitlab.example.org", "gitlab"],
    ["gitea.example.org:3000", "gitea"],
    ["Forgejo.example.org", "gitea"],
    ["codeberg.org", "gitea"],
  ])("is recognized by the name of %s", async (name, kind) => {
    // Without a resolver that knows the made-up ones: nothing is asked.
    const scm = createSourceControl({ allowPrivateAddresses: false, plainHttpHosts: new Set() });
    expect(await scm.hostKind(name)).toBe(kind);
  });

  test("is not recognized by a name that fits both", async () => {
    const scm = createSourceControl({ allowPrivateAddresses: false, plainHttpHosts: new Set() });
    await expect(scm.hostKind("github-mirror.gitlab.invalid")).rejects.toMatchObject({ kind: "unavailable" });
  });

  test.each(["github", "gitlab", "gitea", "plain"] as const)(
    "is found out of one of kind %s, once",
    async (kind) => {
      const { host, scm } = await startHost(kind);
      expect(await scm.hostKind(host.host)).toBe(kind);
      const asked = host.requests.length;
      expect(asked).toBe({ gitlab: 1, github: 2, gitea: 3, plain: 3 }[kind]);
      expect(await scm.hostKind(host.host)).toBe(kind);
      expect(host.requests).toHaveLength(asked);
    },
  );

  test("is asked in spans that have not failed where the host refuses, as hosts of other kinds do", async () => {
    const { host } = await startHost("gitea");
    const sent: Span[] = [];
    const options = { now: () => 1_000, newId: () => v7() };
    const scm = createSourceControl({
      allowPrivateAddresses: true,
      plainHttpHosts: new Set([host.host]),
      traces: { beginRequest: (request) => beginRequestSpan(request, options, (span) => sent.push(span)) },
    });
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const query = { host: host.host, token: host.token, query: "x", limit: 1, traceparent };
    await scm.searchRepositories(query);
    const probes = sent.slice(0, 3);
    expect(probes.some((span) => Number(span.attributes["http.response.status_code"]) >= 400)).toBe(true);
    expect(probes.map(({ hasFailed }) => hasFailed)).toEqual([false, false, false]);
    // With a token that the host does not take, being refused is a failure.
    await expect(scm.searchRepositories({ ...query, token: "wrong" })).rejects.toThrow();
    expect(sent.at(-1)).toMatchObject({ hasFailed: true, attributes: { "error.type": "401" } });
  });

  test("is forgotten of the host that was found out first when there are too many", async () => {
    const hosts = await Promise.all(["plain", "gitlab", "plain"].map((kind) => startHost(kind as "plain")));
    const names = hosts.map(({ host }) => host.host);
    const scm = createSourceControl(
      { allowPrivateAddresses: true, plainHttpHosts: new Set(names) },
      { ...SCM_LIMITS, knownHosts: 2 },
    );
    const asked = () => hosts.map(({ host }) => host.requests.length);
    for (const name of [...names.slice(0, 2), ...names.slice(0, 2)]) await scm.hostKind(name);
    expect(asked()).toEqual([3, 1, 0]);
    for (const name of [names[2], names[1], names[0]]) await scm.hostKind(name ?? "");
    expect(asked()).toEqual([6, 1, 3]);
  });

  test("is asked without a token", async () => {
    const { host, scm } = await startHost("github");
    await scm.searchRepositories({ host: host.host, token: host.token, query: "x", limit: 1 });
    expect(host.requests.map(({ target, headers }) => [target.split("?")[0], headers.authorization])).toEqual(
      [
        ["/api/v4/version", undefined],
        ["/api/v3/meta", undefined],
        ["/api/v3/search/repositories", `Bearer ${host.token}`],
      ],
    );
  });

  test.each([
    ["a version", { status: 200, body: { version: "18.1.0", revision: "abc" } }, "gitlab"],
    ["GitLab's header", { status: 404, headers: { "x-gitlab-meta": "{}" } }, "gitlab"],
    ["GitLab's refusal", { status: 401, body: { message: "401 Unauthorized" } }, "gitlab"],
    ["another refusal", { status: 401, body: { message: "please log in" } }, "plain"],
    ["a version of something else", { status: 200, body: { version: "1" } }, "plain"],
    ["a page", { status: 200, body: "<h1>Welcome</h1>" }, "plain"],
    [
      "a redirect to its login",
      { status: 302, headers: { location: "https://login.example.org/" } },
      "plain",
    ],
    ["more than 5 MiB", { bytes: 5 * 1_024 * 1_024 + 1 }, "plain"],
  ])("is, with %s for the first question, as expected", async (_, fault, kind) => {
    const { host, scm } = await startHost("plain");
    host.fail(fault);
    expect(await scm.hostKind(host.host)).toBe(kind);
  });

  test.each([
    ["its meta data", { status: 200, body: { verifiable_password_authentication: false } }, "github"],
    ["its header", { status: 406, headers: { "x-github-request-id": "1" } }, "github"],
    ["a page", { status: 200, body: "<h1>Welcome</h1>" }, "plain"],
  ])("is, with %s for the second question, as expected", async (_, fault, kind) => {
    const { host, scm } = await startHost("plain");
    host.fail(fault, { when: ({ target }) => target === "/api/v3/meta" });
    expect(await scm.hostKind(host.host)).toBe(kind);
  });

  test.each([
    ["its settings", { status: 200, body: { max_response_items: 50, default_paging_num: 30 } }, "gitea"],
    [
      "its refusal of everybody who is not signed in",
      { status: 403, body: { message: "Only signed in user is allowed to call APIs." } },
      "gitea",
    ],
    ["another refusal", { status: 403, body: { message: "please log in" } }, "plain"],
    ["settings of something else", { status: 200, body: { max_response_items: "50" } }, "plain"],
  ])("is, with %s for the third question, as expected", async (_, fault, kind) => {
    const { host, scm } = await startHost("plain");
    host.fail(fault, { when: ({ target }) => target === "/api/v1/settings/api" });
    expect(await scm.hostKind(host.host)).toBe(kind);
  });

  test.each([
    [500, "unavailable"],
    [429, "rate_limited"],
  ])("stays open after a %i, and is asked again", async (status, kind) => {
    const { host, scm } = await startHost("github");
    host.fail({ status });
    await expect(scm.hostKind(host.host)).rejects.toMatchObject({ kind, retriable: true });
    expect(await scm.hostKind(host.host)).toBe("github");
  });

  test("is none where nobody listens, until somebody does", async () => {
    const port = await freePort();
    const host = `127.0.0.1:${port}`;
    const scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host]) });
    expect(await scm.hostKind(host)).toBe("plain");
    const late = createServer((socket) => {
      socket
        .resume()
        .end('HTTP/1.1 200 OK\r\ncontent-length: 35\r\n\r\n{"version":"18.1","revision":"abc"}\n');
    });
    await new Promise<void>((resolve) => late.listen(port, "127.0.0.1", resolve));
    expect(await scm.hostKind(host)).toBe("gitlab");
    await new Promise((resolve) => late.close(resolve));
  });

  test("is none where something else than HTTP is spoken", async () => {
    const ssh = createServer((socket) =>
      socket
        .on("error", () => {})
        .resume()
        .end("SSH-2.0-OpenSSH_9.9\r\n"),
    );
    await new Promise<void>((resolve) => ssh.listen(0, "127.0.0.1", resolve));
    const host = `127.0.0.1:${(ssh.address() as { port: number }).port}`;
    for (const plainHttpHosts of [new Set([host]), new Set<string>()]) {
      expect(await createSourceControl({ allowPrivateAddresses: true, plainHttpHosts }).hostKind(host)).toBe(
        "plain",
      );
    }
    await new Promise((resolve) => ssh.close(resolve));
  });
});
