import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  auditTrailOf,
  expectRefused,
  type HostTokenCalls,
  hostTokenCalls,
  ok,
} from "../harness/host-token.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { timestampJson } from "../harness/timestamp.ts";

const HOUR_MS = 3_600_000;

let server: ReachableServer;
let hostTokens: HostTokenCalls;
beforeAll(async () => {
  server = await startHostedServer();
  hostTokens = await hostTokenCalls(server);
});
afterAll(stopAll);

describe("an update", () => {
  test("replaces what is present and leaves the rest", async () => {
    const expiresAt = timestampJson(Date.now() + HOUR_MS);
    const before = await hostTokens.created({ refreshToken: "r", scopes: ["a"], expiresAt });
    await ok(hostTokens.update(before.id, { token: "new" }));
    expect((await hostTokens.get(before.id)).body.token).toEqual(before);
    const later = timestampJson(Date.now() + 2 * HOUR_MS);
    await ok(hostTokens.update(before.id, { expiresAt: later, scopes: ["b", "c"] }));
    expect((await hostTokens.get(before.id)).body.token).toEqual({
      ...before,
      expiresAt: later,
      scopes: ["b", "c"],
    });
    const { rows, kinds } = await auditTrailOf(server, before.id);
    expect(kinds).toEqual(["created", "updated", "updated"]);
    expect(rows[1]?.diff).toEqual({ token: ["(secret)", "(new secret)"] });
    expect(Object.keys(rows[2]?.diff).toSorted()).toEqual(["expiresAt", "scopes"]);
  });

  test("removes what its mask names, and a refresh token that is empty", async () => {
    const expiresAt = timestampJson(Date.now() + HOUR_MS);
    const { id } = await hostTokens.created({ refreshToken: "r", scopes: ["a"], expiresAt });
    await ok(hostTokens.update(id, { updateMask: "scopes,expiresAt,refreshToken" }));
    const { token } = (await hostTokens.get(id)).body;
    expect([token.scopes, token.expiresAt]).toEqual([[], undefined]);
    await ok(hostTokens.update(id, { refreshToken: "r2" }));
    await ok(hostTokens.update(id, { refreshToken: "" }));
    const { rows } = await auditTrailOf(server, id);
    expect(rows.slice(1).map(({ diff }) => diff.refreshToken)).toEqual([
      ["(secret)", null],
      [null, "(new secret)"],
      ["(secret)", null],
    ]);
  });

  test("empties the scopes for an explicit empty list in JSON, and leaves them when there is none", async () => {
    const { id } = await hostTokens.created({ scopes: ["a"] });
    await ok(hostTokens.update(id, { refreshToken: "r" }));
    expect((await hostTokens.get(id)).body.token.scopes).toEqual(["a"]);
    await ok(hostTokens.update(id, { scopes: [] }));
    expect((await hostTokens.get(id)).body.token.scopes).toEqual([]);
  });

  test("that changes nothing leaves no trace", async () => {
    const { id } = await hostTokens.created({ scopes: ["a"] });
    await ok(hostTokens.update(id, { scopes: ["a"] }));
    await ok(hostTokens.update(id, {}));
    expect((await auditTrailOf(server, id)).kinds).toEqual(["created"]);
  });

  test("is refused for an expiry that has passed and for a mask that removes the token", async () => {
    const { id } = await hostTokens.created({});
    const past = timestampJson(Date.now() - 1_000);
    expectRefused(
      await hostTokens.update(id, { expiresAt: past }),
      400,
      "VALUE_UNUSABLE",
      /^expiresAt has passed/,
    );
    for (const updateMask of ["token", "id", "updateMask", "host", "nothing", "scopes.x"]) {
      expectRefused(await hostTokens.update(id, { updateMask }), 400, "FIELD_MASK_INVALID");
    }
    await ok(hostTokens.update(id, { token: "new", updateMask: "token,scopes" }));
    expectRefused(await hostTokens.update(id, { token: "" }), 400, "CONSTRAINT_VIOLATED");
  });
});

test("a runner that is deleted takes its host tokens with it", async () => {
  const runner = await hostTokens.newRunner("Short-lived");
  const { id } = await hostTokens.created({ runnerId: runner });
  await ok(hostTokens.call("RunnerService/DeleteRunner", { runnerId: runner }));
  expectRefused(await hostTokens.get(id), 404, "NOT_FOUND");
  expect((await auditTrailOf(server, id)).kinds).toEqual(["created", "deleted"]);
});
