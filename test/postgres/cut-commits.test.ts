import { create as createMessage } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { ProjectService as ProjectContract } from "#gen/service/v1/project_service_pb.js";
import type { Caller } from "../../src/domain/identity/caller.ts";
import { repeatableKey } from "../../src/services/call/idempotency.ts";
import { ProjectService } from "../../src/services/project/project-service.ts";
import { findEnvironment } from "../../src/store/environment/environment.ts";
import { type Answer, post, repository } from "../harness/call.ts";
import { nameDatabase } from "../harness/data-config.ts";
import { type DatabaseLink, startLinks } from "../harness/database-link.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { holdLocks, sequencesOf, untilWaiting } from "../harness/locked-organizations.ts";
import { endNodes } from "../harness/node-process.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, openProcess } from "../harness/postgres-store.ts";
import { runCommand, startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { startServers } from "../harness/several-servers.ts";
import { contextOf, openTestStore, type TestStore } from "../harness/test-store.ts";
import { until } from "../harness/until.ts";

const CALLERS = 5;

/** The moments at which a transaction is cut, and whether it is then there. */
const MOMENTS = [
  ["just before the database gets the commit", "held-commits", false],
  ["after the commit and just before the server hears of it", "held-answers", true],
] as const;

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
});
afterAll(async () => {
  await stopAll();
  await endNodes();
  await cluster?.stop();
});

const REMOTE = "https://git.example.org/team/hello.git";
let made = 0;
/** A text that only the writes of one test have, and their names and keys. */
function newWrites() {
  made += 1;
  const marker = `cut at its commit ${made}.`;
  return {
    marker,
    writes: Array.from({ length: CALLERS }, (_, index) => ({
      name: `${marker}${index}`,
      key: crypto.randomUUID(),
    })),
  };
}

describe("a transaction of callers", () => {
  let url: string;
  let link: DatabaseLink;
  /** Reaches the database by the link; the other leads the jobs. */
  let linked: TestServer;
  let other: TestServer;
  let organizationId: string;
  beforeAll(async () => {
    url = await emptyDatabase(cluster);
    [link] = (await startLinks(url, 1)) as [DatabaseLink];
    const servers = await startServers(url, 2, { urlOf: (index) => (index === 1 ? link.url : url) });
    [other, linked] = servers as [TestServer, TestServer];
    ({ organizationId } = await succeeded(post(other, "IdentityService/GetAuthenticatedIdentity")));
  });

  const create = (server: TestServer, { name, key }: { readonly name: string; readonly key: string }) =>
    post(server, "ProjectService/CreateProject", { name, initializer: repository(REMOTE) }, other.token, {
      "idempotency-key": key,
    });
  afterEach(() => link.enter("open"));

  const createWhenReady = (...args: Parameters<typeof create>) =>
    until(
      () => create(...args).catch(() => undefined),
      (answer): answer is Answer => answer !== undefined && answer.status !== 503,
    ) as Promise<Answer>;

  /** What happens to the transaction that is held, and how it is repaired. */
  const FAULTS = {
    "the network breaks": { cause: () => link.enter("refused"), repair: async () => undefined },
    "the server is killed": {
      cause: () => linked.kill(),
      async repair() {
        const { dataDir } = other;
        linked = await startServer({ dataDir, env: { CHARTROOM_DATABASE_URL: link.url } });
      },
    },
    "the database shuts down at once": { cause: () => cluster.crash(), repair: () => cluster.restart() },
  };

  describe.each(MOMENTS)("that is cut %s", (_, state, isCommitted) => {
    test.each(Object.keys(FAULTS) as (keyof typeof FAULTS)[])(
      "as %s: nobody learns that it was made, and each key gets one response",
      async (name) => {
        const { cause, repair } = FAULTS[name];
        const { marker, writes } = newWrites();
        const lock = await holdLocks(url, [organizationId]);
        const calls = writes.map((write) => create(linked, write).catch(() => undefined));
        await untilWaiting(url, 1);
        await link.enter(state, marker);
        await lock.release();
        const shared = await until(link.held, (count) => count > 0);
        await cause();
        const cutAnswers = await Promise.all(calls);
        await link.enter("open");
        await repair();
        // A server that is killed says nothing.
        const expected = name === "the server is killed" ? undefined : [503, "unavailable"];
        expect(cutAnswers.map((answer) => answer && [answer.status, answer.body.code])).toEqual(
          writes.map(() => expected),
        );

        const answers = await Promise.all(writes.map((write) => createWhenReady(other, write)));
        expect(answers.map(({ status }) => status)).toEqual(writes.map(() => 200));
        const replayed = answers.filter(({ header }) => header.get("idempotency-replayed") === "true");
        expect(replayed).toHaveLength(isCommitted ? shared : 0);
        const again = await Promise.all(writes.map((write) => createWhenReady(linked, write)));
        expect(again.map(({ body }) => body)).toEqual(answers.map(({ body }) => body));
        const { projects } = await succeeded(
          post(other, "ProjectService/ListProjects", { filter: { search: marker } }),
        );
        expect(projects.map((each: { id: string }) => each.id).sort()).toEqual(
          answers.map(({ body }) => body.project.id).sort(),
        );
      },
    );
  });

  test("leaves a whole record, cut or not", async () => {
    const verified = await runCommand(["audit", "verify", "--data-dir", other.dataDir]);
    expect([verified.code, verified.stderr]).toEqual([0, expect.any(String)]);
  });
});

describe("callers whose writes share a transaction", () => {
  let url: string;
  let link: DatabaseLink;
  let linked: TestStore;
  let other: TestStore;
  let caller: Caller;
  beforeAll(async () => {
    url = await emptyDatabase(cluster);
    await (await openProcess(url)).close();
    [link] = (await startLinks(url, 1)) as [DatabaseLink];
    [linked, other] = [link.url, url].map((address) => {
      const dataDir = temporaryFolder();
      nameDatabase(dataDir, address);
      return openTestStore({ dataDir, groupMs: 60_000 });
    }) as [TestStore, TestStore];
    // Its ids are others.
    other.clock.now += 1_000;
    caller = await other.createOrganization("harbour");
  });
  afterEach(() => link.enter("open"));
  afterAll(() => Promise.all([linked?.store.close(), other?.store.close()]));

  async function create({ deps }: TestStore, { name, key }: { readonly name: string; readonly key: string }) {
    const ctx = contextOf(ProjectContract.method.createProject, caller);
    ctx.values.set(repeatableKey, { key, hashes: [Buffer.from(name)] });
    const service = new ProjectService({ ...deps, findEnvironment });
    const specs = [{ spec: { case: "git" as const, value: { remoteUri: REMOTE } } }];
    const request = createMessage(ProjectContract.method.createProject.input, {
      name,
      initializer: { specs },
    });
    const { project } = await service.createProject(request, ctx);
    return { id: project?.id, isReplayed: ctx.responseHeader.get("idempotency-replayed") === "true" };
  }

  test.each(MOMENTS)(
    "that is cut %s are all answered that it is unavailable, and get one response each",
    async (...moment) => {
      const [, state, isCommitted] = moment;
      const { marker, writes } = newWrites();
      const before = await sequencesOf(other.store, "audit_log", caller);
      const lock = await holdLocks(url, [caller.organizationId]);
      const calls = writes.map((write) => create(linked, write));
      await untilWaiting(url, 1);
      await link.enter(state, marker);
      await lock.release();
      await until(link.held, (count) => count === CALLERS);
      await link.enter("refused");
      for (const call of await Promise.allSettled(calls))
        expect(call).toMatchObject({ status: "rejected", reason: { name: "StoreUnavailable" } });
      await link.enter("open");

      const answers = await Promise.all(writes.map((write) => create(other, write)));
      expect(answers.map(({ isReplayed }) => isReplayed)).toEqual(writes.map(() => isCommitted));
      const again = await Promise.all(writes.map((write) => create(linked, write)));
      expect(again).toEqual(answers.map((answer) => ({ ...answer, isReplayed: true })));
      const after = await sequencesOf(other.store, "audit_log", caller);
      expect(after).toEqual(Array.from({ length: before.length + CALLERS }, (_, index) => index + 1));
    },
  );
});
