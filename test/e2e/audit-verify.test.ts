import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { post } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import { runCommand, startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";

let server: TestServer;
let organization: string;
beforeAll(async () => {
  server = await startServer();
  organization = (await addOrganization(server, "Second")).organizationId;
  for (let made = 0; made < 3; made++) await post(server, "RunnerService/CreateRunner", { name: `r${made}` });
  await server.stop();
});
afterAll(stopAll);

/** A copy of the database alone, in a folder without a key. */
function copied(): string {
  const folder = temporaryFolder();
  copyFileSync(join(server.dataDir, "chartroom.db"), join(folder, "chartroom.db"));
  return folder;
}

const verify = (folder: string) =>
  runCommand(["audit", "verify", "--data-dir", folder, "--key-file", join(server.dataDir, "key.json")]);

describe("chartroom audit verify", () => {
  test("says of a copy that every chain holds, with the hash to keep", async () => {
    const { code, stdout, stderr } = await verify(copied());
    expect([code, stderr]).toEqual([0, ""]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/^installation: 2 rows, 2 hold; last hash [0-9a-f]{64}$/);
    for (const line of lines.slice(1, 3)) {
      expect(line).toMatch(/^organization [0-9a-f-]{36}: (\d+) rows, \1 hold; last hash [0-9a-f]{64}$/);
    }
    expect(lines[3]).toBe("every chain holds");
  });

  test("names each chain that breaks in a copy and the row where it does, and ends with 1", async () => {
    const folder = copied();
    const raw = new Database(join(folder, "chartroom.db"));
    raw.exec("drop trigger audit_log_is_not_updated");
    raw
      .prepare("update audit_log set actor_id = 'somebody' where organization_id = ? and sequence = 2")
      .run(organization);
    raw.exec("update audit_log set reason = 'none' where organization_id is null and sequence = 1");
    raw.close();
    const { code, stdout } = await verify(folder);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      new RegExp(
        `^organization ${organization}: \\d+ rows, 1 hold; breaks at row 2: what it says is not what its hash was made over$`,
        "m",
      ),
    );
    expect(stdout).toMatch(/^installation: 2 rows, 0 hold; breaks at row 1: /m);
    expect(stdout).toMatch(/^organization [0-9a-f-]{36}: (\d+) rows, \1 hold; last hash [0-9a-f]{64}$/m);
    expect(stdout).toMatch(/2 of 3 chains are broken\n$/);
  });

  test("follows a chain over a rotation of the keys, beyond which repetitions are known too", async () => {
    const old = await startServer();
    const { token } = old;
    const create = (to: TestServer) =>
      post(to, "RunnerService/CreateRunner", { name: "rotated" }, token, { "idempotency-key": "rotated" });
    const first = await create(old);
    await old.stop();
    const { dataDir } = old;
    expect((await runCommand(["keys", "rotate", "--data-dir", dataDir])).code).toBe(0);
    const rotated = await startServer({ dataDir });
    const second = await create(rotated);
    expect(second.header.get("idempotency-replayed")).toBe("true");
    expect(second.body.runner).toEqual(first.body.runner);
    expect((await post(rotated, "RunnerService/CreateRunner", { name: "later" }, token)).status).toBe(200);
    await rotated.stop();
    const raw = new Database(join(dataDir, "chartroom.db"), { readonly: true });
    expect(raw.prepare("select distinct key_id from audit_log").all()).toHaveLength(2);
    raw.close();
    const { code, stdout } = await runCommand(["audit", "verify", "--data-dir", dataDir]);
    expect([code, stdout.trimEnd().split("\n").at(-1)]).toEqual([0, "every chain holds"]);
  });

  test("asks for the key file instead of making one", async () => {
    const folder = copied();
    const { code, stderr } = await runCommand(["audit", "verify", "--data-dir", folder]);
    expect([code, stderr]).toEqual([
      1,
      `chartroom: there is no key file ${join(folder, "key.json")}: name the one of the server with --key-file\n`,
    ]);
    expect(existsSync(join(folder, "key.json"))).toBe(false);
  });

  test("says when a folder holds no database", async () => {
    const folder = temporaryFolder();
    const { code, stderr } = await verify(folder);
    expect([code, stderr]).toEqual([1, `chartroom: the folder ${folder} holds no chartroom.db\n`]);
  });
});
