import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { Caller } from "../../src/domain/identity/caller.ts";
import { createCallLimits } from "../../src/rpc/access/call-limits.ts";
import type { Others } from "../../src/store/listeners.ts";
import { post, reasonOf } from "../harness/call.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, openProcess } from "../harness/postgres-store.ts";
import { stopAll, type TestServer } from "../harness/server.ts";
import { startServers } from "../harness/several-servers.ts";
import { until } from "../harness/until.ts";

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
});
afterAll(async () => {
  await stopAll();
  await cluster?.stop();
});

test("what one server refuses past a limit, the others refuse a second later", async () => {
  const url = await emptyDatabase(cluster);
  const servers = await startServers(url, 3, { args: ["--refusals-per-address", "1"] });
  const [first, ...others] = servers as [TestServer, ...TestServer[]];
  expect((await post(first, "ProjectService/ListProjects", {}, "cr_pat_wrong")).status).toBe(401);
  for (const server of others) {
    // Calls with a valid token use nothing up: what counts came from the first.
    const refused = await until(
      () => post(server, "ProjectService/ListProjects"),
      ({ status }) => status === 429,
    );
    expect(reasonOf(refused)).toBe("TOO_MANY_CALLS");
  }
});

test("three servers let a token's limit through within a tenth in every minute", async () => {
  const LIMIT = 6_000;
  const url = await emptyDatabase(cluster);
  const stores = [await openProcess(url)];
  for (let more = 0; more < 2; more++) stores.push(await openProcess(url));
  const sessions = stores.flatMap(({ others }) => (others ? [others] : []));
  let now = 0;
  const settings = { rateLimits: "on", callsPerServer: 0, refusalsPerAddress: LIMIT } as const;
  const limits = sessions.map((others, index) =>
    createCallLimits(
      { ...settings, callsPerToken: LIMIT, callsPerAccount: 10 * LIMIT },
      others,
      () => now,
      `server-${index}`,
    ),
  );
  const tell = tellingAll(sessions);
  const subject = create(SubjectSchema, { id: "user" });
  const caller: Caller = {
    ...{ organizationId: "harbour", accountId: "ann", tokenId: "token", subject },
    ...{ role: "member", readOnly: false },
  };
  // Each learns that the others are there, and divides what may come at once among them.
  for (let round = 0; round < 2; round++) {
    for (const { exchange } of limits) exchange();
    await tell(`presence ${round}`);
  }
  const seconds: number[] = [];
  const admitted = sessions.map(() => 0);
  for (let began = 0; now < 120_000; now += 10) {
    for (const [index, { admit }] of limits.entries())
      while (!admit(caller)?.refusal) admitted[index] = (admitted[index] ?? 0) + 1;
    if (now % 1_000 !== 990) continue;
    for (const { exchange } of limits) exchange();
    await tell(`second ${now}`);
    const whole = admitted.reduce((sum, each) => sum + each);
    seconds.push(whole - began);
    began = whole;
  }
  for (const each of admitted) expect(each).toBeGreaterThan(LIMIT / 10);
  const minutes = seconds.slice(0, -59).map((_, from) => seconds.slice(from, from + 60));
  for (const minute of minutes) {
    const whole = minute.reduce((sum, each) => sum + each);
    expect(whole).toBeGreaterThanOrEqual(0.9 * LIMIT);
    expect(whole).toBeLessThanOrEqual(1.1 * LIMIT);
  }
  for (const store of stores) await store.close();
});

/**
 * Returns a function that tells a text to all sessions, after their earlier texts, and waits until each has heard it of
 * all others; again each second, as a text may be lost.
 */
function tellingAll(sessions: readonly Others[]): (text: string) => Promise<void> {
  const heard = new Set<string>();
  let isWhole = () => {};
  for (const [index, { onMessage }] of sessions.entries())
    onMessage((text) => {
      heard.add(`${text} at ${index}`);
      isWhole();
    });
  return async (text) => {
    const awaited = sessions.flatMap((_, to) =>
      sessions.flatMap((_, from) => (from === to ? [] : [`${text} of ${from} at ${to}`])),
    );
    const tell = () => {
      for (const [from, session] of sessions.entries()) session.tell(`${text} of ${from}`);
    };
    const again = setInterval(tell, 1_000);
    await new Promise<void>((resolve) => {
      isWhole = () => {
        if (awaited.every((each) => heard.has(each))) resolve();
      };
      tell();
    });
    clearInterval(again);
    heard.clear();
  };
}
