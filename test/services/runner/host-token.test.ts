import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { Principal, type Subject, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { keysFrom } from "../../../src/keys.ts";
import {
  DamagedHostToken,
  reencryptHostTokens,
} from "../../../src/services/runner/host-token-reencryption.ts";
import { readHostCredential } from "../../../src/services/runner/host-token-secret.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import type { HostTokenTable } from "../../../src/store/runner/runner-schema.ts";
import { OPERATOR, type Scope } from "../../../src/store/store.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { type Services, servicesOf } from "../services.ts";

const HOST = "git.example.org";
const OPERATION = "runner.v1.HostTokens/Get";

let testStore: TestStore;
let caller: Caller;
let own: Services;
let runnerId: string;
let runner: { id: string; principal: number };

beforeEach(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  own = servicesOf(testStore, caller);
  ({ runnerId } = await own.runnerWithClass("north"));
  runner = { id: runnerId, principal: Principal.RUNNER };
});
afterEach(() => testStore.close());

async function store(token: string, refreshToken = "", host = HOST): Promise<string> {
  const answer = await own.configuration.createHostAuthenticationToken({
    ...{ runnerId, host, token, refreshToken },
  });
  return answer.token?.id ?? "";
}

/** Opens as the runner would. */
function open(
  use: Partial<{ runnerId: string; host: string; subject: Subject }> = {},
  scope: Scope = caller,
  keys = testStore.keys,
) {
  return testStore.store.write(runner, OPERATION, (tx) =>
    readHostCredential(tx, scope, keys, { runnerId, host: HOST, subject: caller.subject, ...use }),
  );
}

const row = (id: string) =>
  builderOf(testStore.store.reader)
    .selectFrom("host_token")
    .selectAll()
    .where("id", "=", id)
    .executeTakeFirstOrThrow();

const change = (id: string, values: Partial<HostTokenTable>) =>
  testStore.store.write(OPERATOR, "test", (tx) =>
    builderOf(tx.db).updateTable("host_token").set(values).where("id", "=", id).execute(),
  );

describe("a stored credential", () => {
  test("opens to what it was, for its runner, host and subject", async () => {
    const id = await store("the credential", "the refresher");
    expect(await open()).toMatchObject({
      token: { id, host: HOST },
      secrets: { token: "the credential", refreshToken: "the refresher" },
    });
  });

  test("opens for no other runner, host, subject or organization, and nothing of it is recorded", async () => {
    await store("the credential");
    const { organizationId } = await testStore.createOrganization("island");
    const before = await testStore.history(caller);
    const serviceAccount = { id: caller.subject.id, principal: Principal.SERVICE_ACCOUNT };
    expect(await open({ runnerId: testStore.newId() })).toBeUndefined();
    expect(await open({ host: "other.example.org" })).toBeUndefined();
    expect(await open({ subject: create(SubjectSchema, serviceAccount) })).toBeUndefined();
    expect(await open({}, { organizationId })).toBeUndefined();
    expect(await testStore.history(caller)).toEqual(before);
  });

  test("is put into the audit log each time it is opened, and leaves no event, since nothing changed", async () => {
    const id = await store("the credential");
    const before = await testStore.history(caller);
    await open();
    await open();
    const { audit, events } = await testStore.history(caller);
    expect(events).toEqual(before.events);
    expect(audit.slice(before.audit.length)).toMatchObject(
      [0, 1].map(() => ({
        actor_id: runnerId,
        actor_principal: Principal.RUNNER,
        operation: OPERATION,
        subject_type: "host_token",
        subject_id: id,
        diff: "{}",
      })),
    );
  });

  test("rests sealed: neither its row nor the record holds its values", async () => {
    const id = await store("the credential", "the refresher");
    await own.configuration.updateHostAuthenticationToken({ id, token: "the credential two" });
    const { sealed_token, sealed_refresh_token, ...rest } = await row(id);
    const bytes = Buffer.concat([sealed_token, sealed_refresh_token ?? Buffer.alloc(0)]).toString("latin1");
    const text = JSON.stringify([rest, await testStore.history(caller)]);
    expect(bytes + text).not.toMatch(/credential two|the credential|refresher/);
    expect((await open())?.secrets).toEqual({ token: "the credential two", refreshToken: "the refresher" });
  });

  test("keeps its refresh token through a new credential, and a credential through a new refresh token", async () => {
    const id = await store("one", "r");
    await own.configuration.updateHostAuthenticationToken({ id, refreshToken: "r two" });
    expect((await open())?.secrets).toEqual({ token: "one", refreshToken: "r two" });
    await own.configuration.updateHostAuthenticationToken({ id, refreshToken: "" });
    expect((await open())?.secrets).toEqual({ token: "one" });
    expect((await row(id)).sealed_refresh_token).toBeNull();
  });

  test("does not open in another row or column", async () => {
    const id = await store("one", "r");
    const other = await row(await store("two", "s", "other.example.org"));
    const mine = await row(id);
    for (const values of [
      { sealed_token: other.sealed_token },
      { sealed_refresh_token: other.sealed_refresh_token },
      { sealed_token: mine.sealed_refresh_token as Uint8Array },
      { sealed_token: mine.sealed_refresh_token as Uint8Array, sealed_refresh_token: mine.sealed_token },
      { key_id: "0123456789abcdef" },
    ]) {
      await change(id, values);
      await expect(open()).rejects.toThrow();
      await change(id, mine);
    }
    expect((await open())?.secrets.token).toBe("one");
  });
});

describe("a rotation", () => {
  const former = new Uint8Array(32).fill(7);
  const rotated = keysFrom(new Uint8Array(32).fill(8), former);

  test("seals every credential with the newest key, once, and leaves no trace in the record", async () => {
    const ids: string[] = [];
    for (let at = 0; at < 250; at++) ids.push(await store(`value ${at}`, at % 2 ? `r ${at}` : "", `h${at}`));
    const before = await testStore.history(caller);
    expect(await reencryptHostTokens(testStore.store, rotated)).toBe(250);
    expect(await reencryptHostTokens(testStore.store, rotated)).toBe(0);
    expect(await testStore.history(caller)).toEqual(before);
    const newest = keysFrom(new Uint8Array(32).fill(8));
    for (const [at, id] of ids.entries()) {
      expect((await row(id)).key_id).toBe(newest.id);
      const { secrets } = (await open({ host: `h${at}` }, caller, newest)) ?? {};
      expect(secrets).toEqual({ token: `value ${at}`, ...(at % 2 && { refreshToken: `r ${at}` }) });
    }
    await expect(open({ host: "h0" })).rejects.toThrow("does not hold the key");
  });

  test("stops at a credential that does not open, and names it", async () => {
    const id = await store("value");
    await change(id, { sealed_token: new Uint8Array(40) });
    const stopped = reencryptHostTokens(testStore.store, rotated);
    await expect(stopped).rejects.toThrow(DamagedHostToken);
    await expect(stopped).rejects.toThrow(id);
  });
});
