import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createSourceControl, type SourceControl } from "../../src/scm/source-control.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";

const COUNT = 1_150;

describe.each(["github", "gitlab", "gitea"] as const)("a search at a host of kind %s", (kind) => {
  let host: ScmHost;
  let scm: SourceControl;
  let urls: string[];

  beforeAll(async () => {
    host = await startScmHost({ kind });
    scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
    urls = Array.from({ length: COUNT }, (_, index) => host.addRepository(`fleet/ship-${index}`));
    host.addRepository("harbour/crane");
    host.addRepository("harbour/crane-2");
  });
  afterAll(() => host.stop());

  const search = (query: string, limit: number) =>
    scm.searchRepositories({ host: host.host, token: host.token, query, limit });
  const pages = async (call: () => Promise<unknown>) => {
    const before = host.requests.length;
    await call();
    return host.requests.length - before;
  };

  test("answers URLs to clone from, in the host's order, with the host's count", async () => {
    expect(await search("crane", 10)).toEqual({
      cloneUrls: [`${host.url}/harbour/crane.git`, `${host.url}/harbour/crane-2.git`],
      totalCount: 2,
      isComplete: true,
    });
  });

  test("finds nothing where there is nothing", async () => {
    expect(await search("anchor", 10)).toEqual({ cloneUrls: [], totalCount: 0, isComplete: true });
  });

  test.each([
    [1, 1],
    [99, 1],
    [100, 1],
    [101, 2],
    [1_000, 10],
  ])("for %i takes %i pages and answers so many", async (limit, expected) => {
    // Gitea's pages are half as long.
    expect(await pages(() => search("ship", limit))).toBe(
      kind === "gitea" ? Math.ceil(limit / 50) : expected,
    );
    expect(await search("ship", limit)).toEqual({
      cloneUrls: urls.slice(0, limit),
      totalCount: COUNT,
      isComplete: true,
    });
  });

  test("for more than there are answers all that the host shows", async () => {
    const { cloneUrls, totalCount } = await search("ship", 5_000);
    expect(cloneUrls).toEqual(kind === "github" ? urls.slice(0, 1_000) : urls);
    expect(totalCount).toBe(COUNT);
  });

  test("finds what is in a group by the host's own words for it", async () => {
    const { cloneUrls } = await search(kind === "github" ? "org:harbour" : "harbour/", 10);
    expect(cloneUrls).toHaveLength(2);
  });

  test.each(["a b&c=d#e?f", "per_page=1", "%2e", "ü 🐧", `${"x".repeat(1_024)}`])(
    "takes %j as words and nothing else",
    async (query) => {
      expect(await search(query, 10)).toMatchObject({ cloneUrls: [], totalCount: 0 });
      const asked = new URL(host.requests.at(-1)?.target ?? "", host.url).searchParams;
      expect(asked.get(kind === "gitlab" ? "search" : "q")).toBe(query);
    },
  );

  const items = (...paths: unknown[]) => {
    const list = paths.map((path) => ({ full_name: path, path_with_namespace: path }));
    if (kind === "gitea") return { ok: true, data: list };
    return kind === "github" ? { total_count: list.length, items: list } : list;
  };
  const next = { link: '<https://elsewhere.example.org/>; rel="next"' };

  test("names each repository once, even when pages overlap, and follows no link of the host", async () => {
    host.fail({ status: 200, headers: next, body: items("o/a", "o/b") });
    host.fail({ status: 200, body: items("o/b", "o/c", "o/b") });
    expect((await search("any", 10)).cloneUrls).toEqual(
      ["a", "b", "c"].map((name) => `${host.url}/o/${name}.git`),
    );
  });

  test("ends although the host names page after page", async () => {
    host.fail({ status: 200, headers: next, body: items("o/a") }, { times: 6 });
    expect(await pages(() => search("any", kind === "gitea" ? 101 : 201))).toBe(6);
  });

  test("leads nowhere else, whatever URL the host names", async () => {
    const evil = {
      full_name: "o/a",
      path_with_namespace: "o/a",
      clone_url: "https://evil.example.org/o/a.git",
      http_url_to_repo: "file:///etc",
    };
    const bodies = { github: { total_count: 1, items: [evil] }, gitlab: [evil], gitea: { data: [evil] } };
    host.fail({ status: 200, body: bodies[kind] });
    expect((await search("any", 10)).cloneUrls).toEqual([`${host.url}/o/a.git`]);
  });

  test.each(["o/../../x", "o", "", "o/a?b", "@evil/x/..", null, 7])(
    "fails as unreadable when the host names the repository %j",
    async (path) => {
      host.fail({ status: 200, body: items(path) });
      await expect(search("any", 10)).rejects.toMatchObject({ kind: "unreadable" });
    },
  );

  test.each([{ message: "odd" }, "text", null, 7, { total_count: 1, items: {}, data: {} }])(
    "fails as unreadable when the host answers %j",
    async (body) => {
      host.fail({ status: 200, body: body === "text" ? "<p>text</p>" : body });
      await expect(search("any", 10)).rejects.toMatchObject({ kind: "unreadable" });
    },
  );

  test("fails whole when a later page fails", async () => {
    host.fail({ status: 500 }, { when: ({ target }) => /[?&]page=2/.test(target) });
    await expect(search("ship", 200)).rejects.toMatchObject({ kind: "unavailable" });
  });

  test("with a token that the host does not take fails as unauthorized", async () => {
    const call = scm.searchRepositories({ host: host.host, token: "another", query: "ship", limit: 1 });
    await expect(call).rejects.toMatchObject({ kind: "unauthorized" });
  });
});

test("a search that GitHub gave up on says that it is not complete", async () => {
  const host = await startScmHost({ kind: "github" });
  const scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
  await scm.hostKind(host.host);
  host.fail({ status: 200, body: { total_count: 0, incomplete_results: true, items: [] } });
  const call = scm.searchRepositories({ host: host.host, token: host.token, query: "ship", limit: 1 });
  expect(await call).toEqual({ cloneUrls: [], totalCount: 0, isComplete: false });
  await host.stop();
});

test("a count that GitLab leaves out stays unknown", async () => {
  const host = await startScmHost({ kind: "gitlab" });
  const scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
  await scm.hostKind(host.host);
  host.fail({ status: 200, body: [{ path_with_namespace: "o/a" }] });
  const call = scm.searchRepositories({ host: host.host, token: host.token, query: "a", limit: 1 });
  expect(await call).toMatchObject({ totalCount: undefined });
  await host.stop();
});
