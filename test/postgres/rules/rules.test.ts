import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../../harness/call.ts";
import { registerRunner, succeeded } from "../../harness/fake-runner.ts";
import { LONG_LEASES } from "../../harness/lease.ts";
import { holdLocks, untilWaiting } from "../../harness/locked-organizations.ts";
import { addMember } from "../../harness/member.ts";
import { type PostgresCluster, startPostgres } from "../../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster } from "../../harness/postgres-store.ts";
import { runCommand, stopAll, type TestServer } from "../../harness/server.ts";
import { startServers } from "../../harness/several-servers.ts";
import { APPROVAL_RULES } from "./approval-rules.ts";
import { ORGANIZATION_RULES } from "./organization-rules.ts";
import { newPlace, outcomeOf, type Place, times } from "./trial.ts";
import { WORK_RULES } from "./work-rules.ts";

const SERVERS = 3;
/** Each rule is tried so often, each time in a new organization. */
const ROUNDS = 3;

let cluster: PostgresCluster;
let url: string;
let servers: TestServer[];
beforeAll(async () => {
  cluster = await startPostgres("embedded", ["fsync=off"]);
  url = await emptyDatabase(cluster);
  servers = await startServers(url, SERVERS, { args: LONG_LEASES });
});
afterAll(async () => {
  await stopAll();
  await cluster?.stop();
});
const first = () => servers[0] as TestServer;

describe("at several servers at once", () => {
  test.each([...ORGANIZATION_RULES, ...WORK_RULES, ...APPROVAL_RULES])("%s", async (_, prepare) => {
    for (let round = 0; round < ROUNDS; round++) {
      const place = await newPlace(first(), url);
      const { calls, outcomes, after } = await prepare(place);
      // Each server has a transaction that waits before any of them reads.
      const lock = await holdLocks(url, [place.organizationId]);
      const all = Promise.all(calls.map((call, index) => call(servers[index % SERVERS] as TestServer)));
      await untilWaiting(url, SERVERS);
      await lock.release();
      const found = await all;
      if (outcomes) expect(found.sort()).toEqual([...outcomes].sort());
      await after?.();
      await expectGapless(place);
    }
  });
});

/** Expects a record without gaps, and events of nothing else; what was only read has no event. */
async function expectGapless({ organizationId }: Place): Promise<void> {
  const sequencesIn = async (table: string): Promise<number[]> => {
    const own = `where organization_id = '${organizationId}' order by sequence`;
    const { rows } = await onCluster(url, `select sequence::int as sequence from ${table} ${own}`);
    return rows.map(({ sequence }) => sequence);
  };
  const [audit, events] = await Promise.all(["audit_log", "event"].map(sequencesIn));
  expect(audit).toEqual(times(audit?.length ?? 0, 0).map((_, index) => index + 1));
  expect(audit).toEqual(expect.arrayContaining(events ?? []));
}

describe("commands at once", () => {
  const command = (...args: string[]) => runCommand([...args, "--data-dir", first().dataDir]);

  test("make one account for an email, whatever organizations it joins", async () => {
    const all = await Promise.all([newPlace(first(), url), newPlace(first(), url), newPlace(first(), url)]);
    const add = ({ organizationId }: Place) =>
      command(
        "member",
        "add",
        "--organization",
        organizationId,
        "--email",
        "new@example.org",
        "--name",
        "New",
      );
    const codes = (await Promise.all(all.map(add))).map(({ code }) => code);
    expect(codes).toEqual([0, 0, 0]);
    const { rows } = await onCluster(
      url,
      "select count(distinct account.id)::int as accounts, count(*)::int as members from account join member on account_id = account.id where email = 'new@example.org'",
    );
    expect(rows).toEqual([{ accounts: 1, members: 3 }]);
  });

  test("make one agent of a name, in an organization or for all", async () => {
    const { organizationId } = await newPlace(first(), url);
    const own = ["--organization", organizationId];
    const add = (...more: string[]) =>
      command("agent", "add", "Only", "--command", "cat", "--form", "text", ...more);
    const added = await Promise.all([add(), add(...own), add(), add(...own)]);
    expect(added.map(({ code }) => code).filter((code) => code === 0)).toHaveLength(1);
    const { rows } = await onCluster(url, "select name from agent where name = 'Only'");
    expect(rows).toHaveLength(1);
  });

  test("make an agent for all, or an administrator defines one of the same name in an organization", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const place = await newPlace(first(), url);
      const runner = await registerRunner(place.server);
      await succeeded(runner.call("Heartbeat", { apiAgents: true }));
      const name = `Twin ${round}`;
      const lock = await holdLocks(url, [null]);
      const adding = command("agent", "add", name, "--command", "cat", "--form", "text");
      const definition = { kind: "AGENT_KIND_TEXT", command: "cat" };
      const defining = place.call("AgentService/CreateAgent", { name, definition }, servers[1]);
      await untilWaiting(url, 2);
      await lock.release();
      const [{ code }, defined] = await Promise.all([adding, defining]);
      expect([code, outcomeOf(defined)]).toEqual(code === 0 ? [0, "VALUE_UNUSABLE"] : [1, "done"]);
    }
  });

  test("let an account join that a server blocks meanwhile, which then asks for more, or refuse it", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const [home, other] = [await newPlace(first(), url), await newPlace(first(), url)];
      const email = `blocked-in-round-${round}@example.org`;
      const { accountId } = await addMember(first(), { organizationId: home.organizationId, email });
      const lock = await holdLocks(url, [null]);
      const named = ["--organization", other.organizationId, "--email", email, "--name", "Known"];
      const joining = command("member", "add", ...named);
      await untilWaiting(url, 1);
      // It has read which organizations the account is in, and does not know the other.
      const blocking = home.call("AccountService/BlockAccount", { accountId, reason: "left" }, servers[1]);
      await untilWaiting(url, 2);
      await lock.release();
      const [{ code, stdout }, blocked] = await Promise.all([joining, blocking]);
      // A person who blocks an account needs to be an administrator of each organization that it is in.
      expect([code, outcomeOf(blocked)]).toEqual(code === 0 ? [0, "PERMISSION_DENIED"] : [1, "done"]);
      if (code !== 0) continue;
      const answer = await post(first(), "AccountService/GetAccount", {}, stdout.trim());
      expect(answer.status).toBe(200);
    }
  });
});

test("the audit chains of all organizations verify", async () => {
  const { code, stderr } = await runCommand(["audit", "verify", "--data-dir", first().dataDir]);
  expect([code, stderr]).toEqual([0, expect.any(String)]);
});
