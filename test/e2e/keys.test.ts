import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { loadKeys } from "../../src/keys.ts";
import { openSecretValue } from "../../src/services/policy/secret-value.ts";
import { openHostTokenSecrets, sealHostTokenSecrets } from "../../src/services/runner/host-token-secret.ts";
import { sealedOfRow } from "../../src/store/runner/host-token.ts";
import { post } from "../harness/call.ts";
import { copyData, dataEnvironmentOf, refusedWhileServerRuns } from "../harness/data-config.ts";
import { registerRunner } from "../harness/fake-runner.ts";
import { postgresUrl } from "../harness/postgres-database.ts";
import { suspendWriters, tampering, untilForgotten, withRawData } from "../harness/raw-data.ts";
import {
  type HostedServer,
  runCommand,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { until } from "../harness/until.ts";

afterAll(stopAll);

const keyFile = (dataDir: string) => join(dataDir, "key.json");
const secretsIn = (dataDir: string): string[] => JSON.parse(readFileSync(keyFile(dataDir), "utf8")).secrets;
const rotate = (dataDir: string) => runHostedCommand(["keys", "rotate", "--data-dir", dataDir]);

interface HostTokenRow {
  readonly id: string;
  readonly key_id: string;
  readonly sealed_token: Buffer;
  readonly sealed_refresh_token: Buffer | null;
}

const hostTokens = (dataDir: string) =>
  withRawData(dataDir, (raw) => raw.rows<HostTokenRow>("select * from host_token order by id"));

/** What a server left behind, and how to get at it. */
type Left = Awaited<ReturnType<typeof leftByServer>>;

let left: Left;
beforeAll(async () => {
  left = await leftByServer();
});

/** A copy of what a server left that has stopped: one credential, and one workflow whose webhook secret was replaced. */
function stoppedServer(): Left {
  const dataDir = join(temporaryFolder(), "data");
  copyData(left.dataDir, dataDir);
  return { ...left, dataDir };
}

async function leftByServer() {
  const server = await startHostedServer();
  const { runner } = (await post(server, "RunnerService/CreateRunner", { name: "In the attic" })).body;
  const { runnerId } = runner;
  const created = await post(server, "RunnerConfigurationService/CreateHostAuthenticationToken", {
    ...{ runnerId, host: "git.example.org", token: "value", refreshToken: "refresher" },
  });
  expect(created.status).toBe(200);
  const action = { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ task: { command: "true" } }] };
  const { workflow } = (await post(server, "WorkflowService/CreateWorkflow", { name: "Nightly", action }))
    .body;
  const workflowId = workflow.id;
  const { secret } = (await post(server, "WorkflowService/RotateWorkflowWebhookSecret", { workflowId })).body;
  const scope = {
    organizationId: (await post(server, "IdentityService/GetAuthenticatedIdentity", {})).body.organizationId,
  };
  const secretRequest = { name: "NPM_TOKEN", value: "a secret value", environmentVariable: true, scope };
  expect((await post(server, "SecretService/CreateSecret", secretRequest)).status).toBe(200);
  await server.stop();
  const { dataDir, token } = server;
  return { dataDir, token, runnerId, workflowId, webhookSecret: secret };
}

/** Adds many credentials the way the server stores them, but quickly. */
async function addHostTokens(dataDir: string, runnerId: string, count: number): Promise<void> {
  const keys = loadKeys(keyFile(dataDir));
  const insert = `insert into host_token select cast(? as text), organization_id, runner_id, cast(? as text), subject_id,
    subject_principal, expires_at, ?, ?, ?, body from host_token where runner_id = ? and host = 'git.example.org'`;
  await withRawData(dataDir, async (raw) => {
    await raw.run("begin");
    for (let at = 0; at < count; at++) {
      const id = v7();
      const { keyId, token, refreshToken } = sealHostTokenSecrets(keys, id, {
        token: `value ${at}`,
        refreshToken: `refresher ${at}`,
      });
      await raw.rows(insert, id, `h${at}`, keyId, token, refreshToken, runnerId);
    }
    await raw.run("commit");
  });
}

describe("chartroom keys rotate", () => {
  test("makes a new key, keeps the former and seals every credential with the new one", async () => {
    const { dataDir, token, workflowId, webhookSecret } = stoppedServer();
    const [former] = secretsIn(dataDir);
    const before = await hostTokens(dataDir);
    const { code, stdout, stderr } = await rotate(dataDir);
    expect([code, stderr]).toEqual([0, ""]);
    expect(secretsIn(dataDir)).toEqual([expect.stringMatching(/^\S{44}$/), former]);
    const keys = loadKeys(keyFile(dataDir));
    expect(stdout).toContain(
      `The new key is ${keys.id}: 1 host authentication token, 1 webhook secret and 1 secret were sealed with it.`,
    );
    expect(stdout).not.toContain(former);
    const [after] = await hostTokens(dataDir);
    expect(after?.key_id).toBe(keys.id);
    expect(after?.sealed_token).not.toEqual(before[0]?.sealed_token);
    expect(after && openHostTokenSecrets(keys, after.id, sealedOfRow(after))).toEqual({
      token: "value",
      refreshToken: "refresher",
    });
    const named = await withRawData(dataDir, (raw) =>
      raw.rows("select key_id, previous_key_id from workflow_secret"),
    );
    expect(named).toEqual([{ key_id: keys.id, previous_key_id: keys.id }]);
    expect(stdout).toContain(`Former keys stay in ${keyFile(dataDir)} for audit rows made with them.\n`);
    const [secret] = await withRawData(dataDir, (raw) =>
      raw.rows<{ id: string; keyId: string; sealed: Uint8Array }>(
        'select id, key_id as "keyId", sealed from secret',
      ),
    );
    expect(secret?.keyId).toBe(keys.id);
    expect(secret && openSecretValue(keys, secret.id, secret)).toBe("a secret value");
    const running = await startHostedServer({ dataDir });
    const asked = await post(running, "WorkflowService/GetWorkflowWebhookSecret", { workflowId }, token);
    expect(asked.body).toEqual({ secret: webhookSecret });
    const runner = await registerRunner(running, { token });
    const spec = { machine: { class: runner.environmentClassId } };
    expect((await post(running, "EnvironmentService/CreateEnvironment", { spec }, token)).status).toBe(200);
    expect((await runner.leaseOne()).secrets).toMatchObject([{ value: "a secret value" }]);
  });

  test("keeps the keys of tokens that a release before SHA-256 stored, and says how many those are", async () => {
    const { dataDir, token } = stoppedServer();
    const keys = loadKeys(keyFile(dataDir));
    const stored = keys.readToken(token)?.hash;
    await withRawData(dataDir, (raw) =>
      raw.rows(
        "update token set hash = ?, hmac_key_id = ? where hash = ?",
        keys.tokenMacs(token)[0],
        keys.id,
        stored,
      ),
    );
    const left = "and for 1 token that is stored under its HMAC until it is next used.";
    expect((await rotate(dataDir)).stdout).toContain(left);
    expect((await rotate(dataDir)).stdout).toContain(left);
    const running = await startHostedServer({ dataDir });
    expect((await post(running, "ProjectService/ListProjects", {}, token)).status).toBe(200);
    await running.stop();
    expect((await rotate(dataDir)).stdout).not.toContain("HMAC");
  });

  test("leaves tokens, pages, idempotent answers and the audit chain working, rotation after rotation", async () => {
    const { dataDir, token } = stoppedServer();
    const create = (on: HostedServer, as = token) =>
      post(on, "UserService/CreatePersonalAccessToken", { description: "kept" }, as);
    const once = { "idempotency-key": "before-the-rotation" };
    const make = (on: HostedServer) => post(on, "RunnerService/CreateRunner", { name: "Once" }, token, once);
    let made: string | undefined;
    const tokens = [token];
    for (let round = 0; round < 3; round++) {
      const running = await startHostedServer({ dataDir });
      for (const each of tokens) {
        expect((await post(running, "IdentityService/GetAuthenticatedIdentity", {}, each)).status).toBe(200);
      }
      const runner = (await make(running)).body.runner.runnerId;
      made ??= runner;
      expect(runner).toBe(made);
      tokens.push((await create(running)).body.token);
      await running.stop();
      expect((await rotate(dataDir)).code).toBe(0);
      expect((await runHostedCommand(["audit", "verify", "--data-dir", dataDir])).stdout).toMatch(
        /every chain holds\n$/,
      );
    }
    expect(secretsIn(dataDir)).toHaveLength(4);
    const issued = await runHostedCommand(["token", "create", "--data-dir", dataDir]);
    expect(issued.stdout).toMatch(/^cr_pat_\w+\n$/);
  });

  test("killed in the middle, leaves every credential readable, and is finished by the next one", async () => {
    const { dataDir, token, runnerId } = stoppedServer();
    const count = 400;
    await addHostTokens(dataDir, runnerId, count);
    const [first] = await hostTokens(dataDir);
    const done150 = `(select count(*) from host_token where key_id <> '${first?.key_id}') >= 150`;
    const goOn = await suspendWriters(dataDir, "update on host_token", done150);
    const child = spawn(process.execPath, ["bin/chartroom.js", "keys", "rotate", "--data-dir", dataDir], {
      stdio: "ignore",
      env: { ...process.env, ...dataEnvironmentOf(dataDir) },
    });
    const exit = once(child, "exit");
    const sealedAnew = () =>
      withRawData(dataDir, async (raw) => {
        const rows = await raw.rows("select id from host_token where key_id <> ?", first?.key_id);
        return rows.length;
      });
    await until(sealedAnew, (rows) => rows > 0);
    child.kill("SIGKILL");
    await exit;
    await untilForgotten(dataDir);
    await goOn();
    const done = await sealedAnew();
    expect(done).toBeGreaterThan(0);
    expect(done).toBeLessThan(count + 1);
    const readable = async () => {
      const keys = loadKeys(keyFile(dataDir));
      const values = (await hostTokens(dataDir)).map(
        (row) => openHostTokenSecrets(keys, row.id, sealedOfRow(row)).token,
      );
      return { keyCount: keys.ids.length, values: new Set(values).size };
    };
    expect(await readable()).toEqual({ keyCount: 2, values: count + 1 });

    const resumed = await runCommand(["keys", "rotate", "--data-dir", dataDir]);
    expect(resumed.code).toBe(0);
    expect(resumed.stdout).toMatch(
      /^An earlier rotation to the key [0-9a-f]{16} was interrupted and is now complete: /,
    );
    expect(resumed.stdout).toContain(`${count + 1 - done} host authentication token`);
    expect(await sealedAnew()).toBe(count + 1);
    expect(await readable()).toEqual({ keyCount: 2, values: count + 1 });
    // A server starts on it, and a further rotation makes a further key.
    const running = await startHostedServer({ dataDir });
    expect((await post(running, "ProjectService/ListProjects", {}, token)).status).toBe(200);
    await running.stop();
    expect((await rotate(dataDir)).stdout).toMatch(/^The new key is /);
    expect(await readable()).toEqual({ keyCount: 3, values: count + 1 });
  });

  test("is refused while a server runs, which knows the former keys only", async () => {
    const server = await startHostedServer();
    const before = readFileSync(keyFile(server.dataDir), "utf8");
    const { code, stdout, stderr } = await rotate(server.dataDir);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toBe(`chartroom: ${refusedWhileServerRuns(server.dataDir, "keys are rotated")}\n`);
    expect(readFileSync(keyFile(server.dataDir), "utf8")).toBe(before);
  });

  test("makes neither a data folder nor a key file", async () => {
    const dataDir = join(temporaryFolder(), "absent");
    const { code, stderr } = await rotate(dataDir);
    const missing = join(dataDir, postgresUrl() === undefined ? "chartroom.db" : "key.json");
    expect([code, stderr]).toEqual([1, `chartroom: there is no ${missing}: nothing was rotated\n`]);
    expect(existsSync(dataDir)).toBe(false);
  });
});

describe("a key file that lacks a key which rows name", () => {
  test.each([
    ["another server's", () => [Buffer.alloc(32, 1).toString("base64")]],
    ["one without a retired key", (secrets: string[]) => secrets.slice(0, 1)],
    ["one from before the rotation", (secrets: string[]) => secrets.slice(1)],
  ])("stops the start and every command with a clear sentence: %s", async (_, broken) => {
    const { dataDir, token } = stoppedServer();
    await rotate(dataDir);
    // Something that only the new key has made.
    await runHostedCommand(["token", "create", "--data-dir", dataDir]);
    const kept = join(temporaryFolder(), "kept.json");
    copyFileSync(keyFile(dataDir), kept);
    writeFileSync(keyFile(dataDir), JSON.stringify({ version: 2, secrets: broken(secretsIn(dataDir)) }));
    for (const args of [
      ["serve", "--port", "0"],
      ["token", "create"],
      ["keys", "rotate"],
    ]) {
      const { code, stdout, stderr } = await runHostedCommand([...args, "--data-dir", dataDir]);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(
        /^chartroom: the key file \S+ is not the one that the data in .+ was written with: it lacks the key [0-9a-f]{16}( and the key [0-9a-f]{16})*\n$/,
      );
    }
    copyFileSync(kept, keyFile(dataDir));
    const running = await startHostedServer({ dataDir });
    expect((await post(running, "ProjectService/ListProjects", {}, token)).status).toBe(200);
  });

  test("is found out by each table whose rows name a key", async () => {
    for (const [table, column] of [
      ["token", "hmac_key_id"],
      ["host_token", "key_id"],
      ["workflow_secret", "key_id"],
      ["workflow_secret", "previous_key_id"],
      ["audit_log", "key_id"],
    ]) {
      const { dataDir } = stoppedServer();
      const id = table === "workflow_secret" ? "workflow_id" : "id";
      await tampering(dataDir, (raw) =>
        raw.run(
          `update ${table} set ${column} = 'ffffffffffffffff' where ${id} = (select min(${id}) from ${table})`,
        ),
      );
      const { code, stderr } = await runHostedCommand(["serve", "--port", "0", "--data-dir", dataDir]);
      expect({ table, column, code, stderr }).toMatchObject({
        table,
        column,
        code: 1,
        stderr: expect.stringContaining("it lacks the key ffffffffffffffff\n"),
      });
    }
  });

  test("does not matter while the database is new", async () => {
    const dataDir = join(temporaryFolder(), "new");
    mkdirSync(dataDir);
    writeFileSync(
      keyFile(dataDir),
      JSON.stringify({ version: 1, secret: Buffer.alloc(32, 1).toString("base64") }),
    );
    const running = await startHostedServer({ dataDir });
    expect((await post(running, "ProjectService/ListProjects", {}, "cr_pat_nobody")).status).toBe(401);
  });
});
