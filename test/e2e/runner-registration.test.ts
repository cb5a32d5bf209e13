import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { auditTrailOf } from "../harness/host-token.ts";
import { insertEnvironmentToken } from "../harness/machine-token.ts";
import { withServerData } from "../harness/member.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: HostedServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

const call = (operation: string, body: object = {}, token = server.token) =>
  post(server, operation, body, token);
const register = (token: string, body: object = {}) => call("WorkService/Register", body, token);
const created = (name: string) => succeeded(call("RunnerService/CreateRunner", { name }));
const runnerNow = async (runnerId: string) =>
  (await succeeded(call("RunnerService/GetRunner", { runnerId }))).runner;
const refusal = (answer: Answer) => [answer.status, reasonOf(answer)];

const DAY_MS = 24 * 3_600_000;
const UNAUTHENTICATED = [401, "UNAUTHENTICATED"];
const DENIED = [403, "PERMISSION_DENIED"];

describe("an exchange token", () => {
  test("is turned into a runner's own token, once", async () => {
    const { runner, exchangeToken } = await created("once");
    const before = Date.now();
    const answer = await succeeded(register(exchangeToken, { version: "2.1.0", systemDetails: "a shed" }));
    expect(answer).toEqual({
      runnerId: runner.runnerId,
      token: expect.stringMatching(/^cr_run_[0-9A-Za-z]{36}$/),
      expiresAt: expect.any(String),
      environmentClassIds: [],
    });
    const days = (Date.parse(answer.expiresAt) - before) / (24 * 3600 * 1000);
    expect(Math.round(days * 100) / 100).toBe(365);
    expect(refusal(await register(exchangeToken))).toEqual(UNAUTHENTICATED);
    expect(await runnerNow(runner.runnerId)).toMatchObject({
      status: { version: "2.1.0", systemDetails: "a shed", phase: "RUNNER_PHASE_ACTIVE", message: "" },
    });
  });

  test("is worth one token only, also to many calls at the same time", async () => {
    const { exchangeToken } = await created("many at once");
    const answers = await Promise.all(Array.from({ length: 20 }, () => register(exchangeToken)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 401]));
  });

  test("that was replaced holds no longer", async () => {
    const { runner, exchangeToken } = await created("replaced");
    const { runnerId } = runner;
    const newer = (await succeeded(call("RunnerService/CreateRunnerToken", { runnerId }))).exchangeToken;
    expect(refusal(await register(exchangeToken))).toEqual(UNAUTHENTICATED);
    expect((await register(newer)).status).toBe(200);
  });

  test("holds for 24 hours, and not a moment longer", async () => {
    const { runner, exchangeToken } = await created("a day");
    const { runner: other } = await created("another day");
    const renewed = await succeeded(call("RunnerService/CreateRunnerToken", { runnerId: other.runnerId }));
    const olderBy = (ms: number) =>
      withServerData(server, (store) =>
        store.write(SYSTEM, "test", async ({ db, now }) => {
          const tokens = builderOf(db)
            .updateTable("token")
            .set((eb) => ({ expires_at: eb("expires_at", "-", ms) }))
            .where("subject_id", "in", [runner.runnerId, other.runnerId]);
          const rows = await tokens.returning("expires_at").execute();
          return rows.map(({ expires_at }) => (expires_at ?? 0) - now);
        }),
      );
    const left = await olderBy(DAY_MS - 60_000);
    expect(left.map((ms) => ms > 0 && ms <= 60_000)).toEqual([true, true]);
    expect((await register(renewed.exchangeToken)).status).toBe(200);
    await olderBy(60_000);
    expect(refusal(await register(exchangeToken))).toEqual([401, "TOKEN_EXPIRED"]);
  });

  test("opens nothing else", async () => {
    const { runner, exchangeToken } = await created("nothing else");
    for (const operation of ["WorkService/LeaseWork", "WorkService/Heartbeat", "RunnerService/ListRunners"]) {
      const request = operation.endsWith("LeaseWork") ? { maxLeases: 1 } : {};
      expect(refusal(await call(operation, request, exchangeToken))).toEqual(DENIED);
    }
    expect((await runnerNow(runner.runnerId)).status.phase).toBe("RUNNER_PHASE_CREATED");
  });

  test("is what registering needs: no other token will do", async () => {
    const runner = await registerRunner(server);
    const { environment } = await succeeded(call("EnvironmentService/CreateEnvironment", {}));
    const { organizationId } = await succeeded(call("IdentityService/GetAuthenticatedIdentity"));
    const environmentToken = await withServerData(server, (store, keys) =>
      insertEnvironmentToken(store, keys, { organizationId, environmentId: environment.id }),
    );
    for (const token of [server.token, runner.token, environmentToken.value]) {
      expect(refusal(await register(token))).toEqual(DENIED);
      if (token !== runner.token)
        expect(refusal(await call("WorkService/Heartbeat", {}, token))).toEqual(DENIED);
    }
  });
});

describe("a runner that registers", () => {
  test("brings a class along when it has none yet", async () => {
    const offer = { environmentClass: { displayName: "Brought along", description: "a small machine" } };
    const { runner, exchangeToken } = await created("with a class");
    const { runnerId } = runner;
    const first = await succeeded(register(exchangeToken, offer));
    const [environmentClassId] = first.environmentClassIds;
    const { environmentClass } = await succeeded(
      call("RunnerConfigurationService/GetEnvironmentClass", { environmentClassId }),
    );
    expect(environmentClass).toMatchObject({ displayName: "Brought along", runnerId, enabled: true });
    const again = (await succeeded(call("RunnerService/CreateRunnerToken", { runnerId }))).exchangeToken;
    const second = await succeeded(register(again, offer));
    expect(second.environmentClassIds).toEqual([environmentClassId]);
    // The token of the first time still holds: programs may share the runner's id.
    for (const { token } of [first, second]) {
      expect((await call("WorkService/Heartbeat", {}, token)).status).toBe(200);
    }
  });

  test("is recorded, without its tokens", async () => {
    const runner = await registerRunner(server, { name: "recorded" });
    const { rows, kinds } = await auditTrailOf(server, runner.runnerId);
    expect(rows.map(({ operation }) => operation)).toEqual([
      "service.v1.RunnerService/CreateRunner",
      "runner.v1.WorkService/Register",
    ]);
    expect(rows[1]?.actor_id).toBe(runner.runnerId);
    expect(kinds).toEqual(["created", "updated"]);
    expect(JSON.stringify(rows)).not.toContain("cr_");
    expect(server.logText()).not.toContain(runner.token);
  });

  test("loses its token when it is deleted", async () => {
    const runner = await registerRunner(server);
    expect((await runner.call("Heartbeat")).status).toBe(200);
    await succeeded(call("RunnerService/DeleteRunner", { runnerId: runner.runnerId }));
    expect(refusal(await runner.call("Heartbeat"))).toEqual(UNAUTHENTICATED);
  });
});

describe("a heartbeat", () => {
  test("says when to call again, and is recorded only where it changes what is known", async () => {
    const runner = await registerRunner(server);
    const seen = async () =>
      withServerData(server, ({ reader }) =>
        builderOf(reader)
          .selectFrom("runner")
          .select("seen_at")
          .where("id", "=", runner.runnerId)
          .executeTakeFirstOrThrow(),
      );
    const first = await seen();
    expect(await succeeded(runner.call("Heartbeat"))).toEqual({ nextWithin: "30s" });
    expect(await succeeded(runner.call("Heartbeat", { version: "1.0.0" }))).toEqual({ nextWithin: "30s" });
    expect((await seen()).seen_at).toBeGreaterThan(first.seen_at ?? 0);
    expect((await auditTrailOf(server, runner.runnerId)).rows).toHaveLength(2);
    await succeeded(runner.call("Heartbeat", { version: "1.1.0", degradedReason: "the disk is full" }));
    expect((await runnerNow(runner.runnerId)).status).toMatchObject({
      version: "1.1.0",
      systemDetails: "a test",
      phase: "RUNNER_PHASE_DEGRADED",
      message: "the disk is full",
    });
    await runner.lease();
    expect((await runnerNow(runner.runnerId)).status.phase).toBe("RUNNER_PHASE_DEGRADED");
    await succeeded(runner.call("Heartbeat", {}));
    expect((await runnerNow(runner.runnerId)).status).toMatchObject({
      version: "1.1.0",
      phase: "RUNNER_PHASE_ACTIVE",
      message: "",
    });
    expect((await auditTrailOf(server, runner.runnerId)).rows).toHaveLength(4);
  });
});
