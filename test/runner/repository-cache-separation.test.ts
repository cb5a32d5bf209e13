import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { HostAuthenticationTokenSource as Source } from "#gen/service/v1/runner_configuration_pb.js";
import { RepositoryCache } from "../../src/runner/cache/repository-cache.ts";
import { openRunnerCache } from "../../src/runner/cache/runner-cache.ts";
import { CachingRunner } from "../harness/caching-runner.ts";
import { type GitHttpServer, serveGit } from "../harness/git-http-server.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

const PASSWORD = "token-of-ada";
const servers: GitHttpServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});
afterAll(stopAll);

let root: string;
let remote: BareRepository;
let runner: CachingRunner;
beforeEach(async () => {
  root = temporaryFolder();
  remote = bareRepository(root, { "a.txt": "one\n" });
  runner = await CachingRunner.start();
});

const REUSED = ["ls-remote", "checkout"];
const FETCHED = ["ls-remote", "fetch", "for-each-ref", "checkout"];
const withToken = (hostAuthenticationTokenId: string, token = PASSWORD) => ({
  credentialFor: async () => ({ token, source: Source.PAT, hostAuthenticationTokenId }),
});

async function servePrivately(): Promise<string> {
  const server = await serveGit(root, { credential: { user: "oauth2", password: PASSWORD } });
  servers.push(server);
  return `${server.url}${remote.folder.slice(root.length)}`;
}

describe("what was cloned with a credential", () => {
  test("is for that credential alone, also where another one has the same value", async () => {
    const remoteUri = await servePrivately();
    await runner.clone({ remoteUri }, withToken("ada"));
    runner.takeCommands();
    await runner.clone({ remoteUri }, withToken("ada"));
    expect(runner.takeCommands()).toEqual(REUSED);
    await runner.clone({ remoteUri }, withToken("bob"));
    expect(runner.takeCommands()).toEqual(FETCHED);
    expect(runner.repositories()).toHaveLength(2);
  });

  test.each<[string, object]>([
    ["with another value under the same id", withToken("ada", "revoked")],
    ["without a credential", {}],
  ])("is for nobody whom the remote refuses: %s", async (_, context) => {
    const remoteUri = await servePrivately();
    await runner.clone({ remoteUri }, withToken("ada"));
    runner.takeCommands();
    await expect(runner.clone({ remoteUri }, context)).rejects.toMatchObject({ reason: "git_unauthorized" });
    // Nothing comes after the refusal.
    expect(runner.takeCommands()).toEqual(["ls-remote"]);
  });

  test("is not cached when the service does not name the credential", async () => {
    const remoteUri = await servePrivately();
    for (const _ of ["first", "second"]) {
      await runner.clone({ remoteUri }, withToken(""));
      expect(runner.takeCommands()).toContain("fetch");
    }
    expect(runner.repositories()).toEqual([]);
  });

  test("names it by no value in the cache", async () => {
    const remoteUri = await servePrivately();
    // No hash in hexadecimal digits has this name in it by chance.
    await runner.clone({ remoteUri }, withToken("zoe"));
    const names = readdirSync(runner.folder, { recursive: true }).map(String);
    expect(names.filter((name) => name.includes(PASSWORD) || name.includes("zoe"))).toEqual([]);
  });
});

describe("the cache of a runner", () => {
  const ONE = "01900000-0000-7000-8000-000000000001";
  const TWO = "01900000-0000-7000-8000-000000000002";
  const log = { warn: () => undefined };
  const MAX = 2 ** 30;

  test("has nothing of a runner of another organization that had the folder before", async () => {
    const workDir = temporaryFolder();
    const folder = (runnerId: string) => join(workDir, "repository-cache", runnerId);
    await openRunnerCache({ workDir, runnerId: ONE, maxBytes: MAX, log });
    const before = await CachingRunner.start({ folder: folder(ONE) });
    await before.clone({ remoteUri: remote.url });
    expect(before.repositories()).toHaveLength(1);
    await openRunnerCache({ workDir, runnerId: TWO, maxBytes: MAX, log });
    expect(existsSync(folder(ONE))).toBe(false);
    const after = await CachingRunner.start({ folder: folder(TWO) });
    after.takeCommands();
    await after.clone({ remoteUri: remote.url });
    expect(after.takeCommands()).toContain("fetch");
  });

  test("is removed when it is off, and nothing else is", async () => {
    const workDir = temporaryFolder();
    await openRunnerCache({ workDir, runnerId: ONE, maxBytes: MAX, log });
    mkdirSync(join(workDir, "workspaces"));
    expect(await openRunnerCache({ workDir, runnerId: ONE, maxBytes: undefined, log })).toBeUndefined();
    expect(readdirSync(workDir)).toEqual(["workspaces"]);
    mkdirSync(join(workDir, "repository-cache/own"), { recursive: true });
    expect(await openRunnerCache({ workDir, runnerId: ONE, maxBytes: undefined, log })).toBeUndefined();
    expect(readdirSync(join(workDir, "repository-cache"))).toEqual(["own"]);
  });

  test("is none where the folder cannot be used", async () => {
    const workDir = temporaryFolder();
    writeFileSync(join(workDir, "repository-cache"), "a file");
    expect(await openRunnerCache({ workDir, runnerId: ONE, maxBytes: MAX, log })).toBeUndefined();
  });
});

describe("the size of a cache", () => {
  /** Repositories of about 100 KB each, with the number of bytes that one takes. */
  async function threeRepositories() {
    const text = (seed: number) =>
      Array.from({ length: 12_000 }, (_, at) => ((at + seed) * 2_654_435_761) % 4_294_967_296).join("\n");
    const uris = [1, 2, 3].map((seed) => bareRepository(root, { "a.txt": text(seed * 1_000_003) }).url);
    const [first = "", second = "", third = ""] = uris;
    const measuring = await CachingRunner.start();
    await measuring.clone({ remoteUri: first });
    return { first, second, third, bytes: measuring.cache.bytes };
  }
  const isCached = async (remoteUri: string) => {
    runner.takeCommands();
    await runner.clone({ remoteUri });
    return !runner.takeCommands().includes("fetch");
  };

  test.each([
    ["in one process", false],
    ["across a restart", true],
  ])("is kept by removing what was not used for longest: %s", async (_, restarts) => {
    const { first, second, third, bytes } = await threeRepositories();
    runner = await CachingRunner.start({ maxBytes: Math.round(bytes * 2.5) });
    for (const remoteUri of [first, second, first]) await runner.clone({ remoteUri });
    if (restarts) await runner.restart();
    await runner.clone({ remoteUri: third });
    expect(runner.cache.bytes).toBeLessThanOrEqual(bytes * 2.5);
    expect(runner.repositories()).toHaveLength(2);
    expect([await isCached(first), await isCached(third), await isCached(second)]).toEqual([
      true,
      true,
      false,
    ]);
  });

  test("takes nothing that is in use", async () => {
    const { first, second, third, bytes } = await threeRepositories();
    runner = await CachingRunner.start({ maxBytes: Math.round(bytes * 2.5) });
    await runner.clone({ remoteUri: first });
    const key = (address: string) => ({ address, user: "", credential: "none" });
    await runner.cache.use(key(first), async () => {
      await runner.clone({ remoteUri: second });
      // The first is the least recently used.
      await runner.clone({ remoteUri: third });
      expect(runner.repositories()).toHaveLength(2);
      await runner.cache.use(key(third), async () => {
        // There is no room while both are in use.
        expect([await isCached(second), await isCached(second)]).toEqual([false, false]);
      });
    });
    expect([await isCached(first), await isCached(third)]).toEqual([true, true]);
  });

  test("lets a repository that is larger push out nothing", async () => {
    const small = bareRepository(root, { "a.txt": "one\n" }).url;
    const { first, bytes } = await threeRepositories();
    runner = await CachingRunner.start({ maxBytes: Math.round(bytes / 2) });
    for (const remoteUri of [small, first]) await runner.clone({ remoteUri });
    expect([await isCached(small), await isCached(first)]).toEqual([true, false]);
    expect(runner.cache.bytes).toBeLessThanOrEqual(bytes / 2);
  });

  test("is applied to what an earlier start left", async () => {
    const { first, second, bytes } = await threeRepositories();
    for (const remoteUri of [first, second]) await runner.clone({ remoteUri });
    const log = { warn: () => undefined };
    const smaller = await RepositoryCache.open({
      folder: runner.folder,
      maxBytes: Math.round(bytes * 1.5),
      log,
    });
    expect(smaller.bytes).toBeLessThanOrEqual(bytes * 1.5);
    expect(runner.repositories()).toHaveLength(1);
  });
});

test("work that ends while it waits for another's fetch does not wait on", async () => {
  const key = { address: remote.url, user: "", credential: "none" };
  const [began, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holding = runner.cache.use(key, (cached) =>
    cached.exclusively(undefined, async () => {
      began.resolve();
      await release.promise;
    }),
  );
  await began.promise;
  const ending = new AbortController();
  const waiting = runner.clone({ remoteUri: remote.url }, { signal: ending.signal });
  ending.abort(new Error("the lease is lost"));
  await expect(waiting).rejects.toThrow("the lease is lost");
  release.resolve();
  await holding;
  await runner.clone({ remoteUri: remote.url });
});
