import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { copyData } from "../harness/data-config.ts";
import { testOnSqlite } from "../harness/engine.ts";
import { addOrganization } from "../harness/organization.ts";
import { columnsOf, tablesOf, tampering, withRawData } from "../harness/raw-data.ts";
import {
  type HostedServer,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";

let server: HostedServer;
let organization: string;
beforeAll(async () => {
  server = await startHostedServer();
  organization = (await addOrganization(server, "Second")).organizationId;
  for (let made = 0; made < 3; made++) await post(server, "RunnerService/CreateRunner", { name: `r${made}` });
  await server.stop();
});
afterAll(stopAll);

/** A copy of the database alone, in a folder without a key. */
function copied(): string {
  const folder = temporaryFolder();
  copyData(server.dataDir, folder);
  rmSync(join(folder, "key.json"));
  return folder;
}

/** Removes every row of an organization, as somebody with the file can. */
function removeOrganization(dataDir: string, id: string): Promise<void> {
  return tampering(dataDir, async (raw) => {
    for (const table of await tablesOf(raw)) {
      const columns = await columnsOf(raw, table);
      if (columns.includes("organization_id"))
        await raw.rows(`delete from "${table}" where organization_id = ?`, id);
    }
    await raw.rows("delete from organization where id = ?", id);
  });
}

const verify = (folder: string) =>
  runHostedCommand(["audit", "verify", "--data-dir", folder, "--key-file", join(server.dataDir, "key.json")]);

describe("chartroom audit verify", () => {
  test("says of a copy that every chain holds, with the hash to keep", async () => {
    const { code, stdout, stderr } = await verify(copied());
    expect([code, stderr]).toEqual([0, ""]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/^installation: 4 rows, 4 hold; last hash [0-9a-f]{64}$/);
    for (const line of lines.slice(1, 3)) {
      expect(line).toMatch(/^organization [0-9a-f-]{36}: (\d+) rows, \1 hold; last hash [0-9a-f]{64}$/);
    }
    expect(lines[3]).toBe("every chain holds");
  });

  test("names each chain that breaks in a copy and the row where it does, and ends with 1", async () => {
    const folder = copied();
    await tampering(folder, (raw) =>
      raw.run(`update audit_log set actor_id = 'somebody' where organization_id = '${organization}' and sequence = 2;
        update audit_log set reason = 'none' where organization_id is null and sequence = 1`),
    );
    const { code, stdout } = await verify(folder);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      new RegExp(
        `^organization ${organization}: \\d+ rows, 1 hold; breaks at row 2: it was changed: its content does not match its hash$`,
        "m",
      ),
    );
    expect(stdout).toMatch(/^installation: 4 rows, 0 hold; breaks at row 1: /m);
    expect(stdout).toMatch(/^organization [0-9a-f-]{36}: (\d+) rows, \1 hold; last hash [0-9a-f]{64}$/m);
    expect(stdout).toMatch(/2 of 3 chains are broken\n$/);
  });

  test("misses an organization whose rows were all removed, its own chain among them", async () => {
    const folder = copied();
    await removeOrganization(folder, organization);
    const { code, stdout } = await verify(folder);
    expect(stdout).not.toMatch(/^organization \S+: 0 rows, 0 hold; last/m);
    expect(stdout).toMatch(
      new RegExp(
        `^organization ${organization}: 0 rows, 0 hold; breaks at row 1: the chain is missing, and so is its organization, which the installation's chain names$`,
        "m",
      ),
    );
    expect([code, stdout.trimEnd().split("\n").at(-1)]).toEqual([1, "1 of 3 chains are broken"]);
  });

  test("misses one that an earlier release made, once a server of this one has started", async () => {
    const old = await startHostedServer();
    const { organizationId } = await addOrganization(old, "Made before");
    await old.stop();
    // As the earlier release left the installation's chain: with the accounts alone, and no hash yet.
    await tampering(old.dataDir, (raw) =>
      raw.run(`delete from audit_log where organization_id is null and subject_type = 'organization';
      update audit_log set sequence = (select count(*) from audit_log as other
        where other.organization_id is null and other.sequence <= audit_log.sequence),
        hash = null, previous_hash = null, key_id = null where organization_id is null;
      update installation set sequence = 2, chain_hash = null`),
    );
    await (await startHostedServer({ dataDir: old.dataDir })).stop();
    const holds = await runHostedCommand(["audit", "verify", "--data-dir", old.dataDir]);
    expect([holds.code, holds.stdout]).toEqual([0, expect.stringMatching(/^installation: 4 rows, 4 hold; /)]);
    await removeOrganization(old.dataDir, organizationId);
    const { code, stdout } = await runHostedCommand(["audit", "verify", "--data-dir", old.dataDir]);
    expect([code, stdout]).toEqual([1, expect.stringContaining(`organization ${organizationId}: 0 rows`)]);
  });

  test("follows a chain over a rotation of the keys, beyond which repetitions are known too", async () => {
    const old = await startHostedServer();
    const { token } = old;
    const create = (to: HostedServer) =>
      post(to, "RunnerService/CreateRunner", { name: "rotated" }, token, { "idempotency-key": "rotated" });
    const first = await create(old);
    await old.stop();
    const { dataDir } = old;
    expect((await runHostedCommand(["keys", "rotate", "--data-dir", dataDir])).code).toBe(0);
    const rotated = await startHostedServer({ dataDir });
    const second = await create(rotated);
    expect(second.header.get("idempotency-replayed")).toBe("true");
    expect(second.body.runner).toEqual(first.body.runner);
    expect((await post(rotated, "RunnerService/CreateRunner", { name: "later" }, token)).status).toBe(200);
    await rotated.stop();
    const keys = await withRawData(dataDir, (raw) => raw.rows("select distinct key_id from audit_log"));
    expect(keys).toHaveLength(2);
    const { code, stdout } = await runHostedCommand(["audit", "verify", "--data-dir", dataDir]);
    expect([code, stdout.trimEnd().split("\n").at(-1)]).toEqual([0, "every chain holds"]);
  });

  test("asks for the key file instead of making one", async () => {
    const folder = copied();
    const { code, stderr } = await runHostedCommand(["audit", "verify", "--data-dir", folder]);
    expect([code, stderr]).toEqual([
      1,
      `chartroom: there is no key file ${join(folder, "key.json")}: name the one of the server with --key-file\n`,
    ]);
    expect(existsSync(join(folder, "key.json"))).toBe(false);
  });

  testOnSqlite("it is about the file")("says when a folder holds no database", async () => {
    const folder = temporaryFolder();
    const { code, stderr } = await verify(folder);
    expect([code, stderr]).toEqual([1, `chartroom: the folder ${folder} holds no chartroom.db\n`]);
  });
});
