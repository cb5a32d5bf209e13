import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { findTokenByHash } from "../../../src/store/identity/token.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { DAY_MS, openTestStore, type TestStore, userOf } from "../../harness/test-store.ts";
import { type Services, servicesOf } from "../services.ts";

let testStore: TestStore;
let caller: Caller;
let own: Services;

beforeEach(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  own = servicesOf(testStore, caller);
});
afterEach(() => testStore.close());

function lookUp(value: string) {
  const read = testStore.keys.readToken(value);
  return read && findTokenByHash(testStore.store.reader, read.hash);
}

async function newest() {
  const token = (await own.users.listPersonalAccessTokens({})).personalAccessTokens.at(-1);
  if (!token) throw new Error("the caller has no token");
  return token;
}

describe("personal access tokens", () => {
  test("are found by their value, which is kept nowhere", async () => {
    const { token } = await own.users.createPersonalAccessToken({ description: "laptop", readOnly: true });
    expect(await lookUp(token)).toMatchObject({
      organization_id: caller.organizationId,
      subject_id: caller.subject.id,
      account_id: caller.accountId,
      read_only: 1,
      expires_at: testStore.clock.now + 30 * DAY_MS,
    });
    const rows = await builderOf(testStore.store.reader).selectFrom("token").selectAll().execute();
    expect(JSON.stringify([rows, await testStore.history(caller)])).not.toContain(token);
  });

  test("are listed with what is known of them, and when they were last used", async () => {
    await own.users.createPersonalAccessToken({ description: "laptop", validFor: durationFromMs(1_000) });
    const token = await newest();
    expect(token).toMatchObject({
      userId: caller.subject.id,
      description: "laptop",
      creator: { id: caller.subject.id },
      createdAt: timestampFromMs(testStore.clock.now),
      expiresAt: timestampFromMs(testStore.clock.now + 1_000),
      readOnly: false,
    });
    expect(token.lastUsed).toBeUndefined();
    await testStore.store.note("token", token.id, { last_used_at: testStore.clock.now + 5 });
    expect((await newest()).lastUsed).toEqual(timestampFromMs(testStore.clock.now + 5));
    const { body } = await builderOf(testStore.store.reader)
      .selectFrom("token")
      .select("body")
      .where("id", "=", token.id)
      .executeTakeFirstOrThrow();
    expect(body).not.toContain("lastUsed");
  });

  test("come a page at a time by creation", async () => {
    for (const description of ["one", "two", "three"]) {
      await own.users.createPersonalAccessToken({ description });
    }
    const first = await own.users.listPersonalAccessTokens({ pagination: { pageSize: 3 } });
    const token = first.pagination?.nextToken ?? "";
    const second = await own.users.listPersonalAccessTokens({ pagination: { pageSize: 3, token } });
    const found = [...first.personalAccessTokens, ...second.personalAccessTokens];
    expect(found.map(({ description }) => description)).toEqual(["", "one", "two", "three"]);
    expect(second.pagination?.nextToken).toBe("");
  });

  test("are unknown from the moment they are deleted", async () => {
    const { token } = await own.users.createPersonalAccessToken({});
    await own.users.deletePersonalAccessToken({ personalAccessTokenId: (await newest()).id });
    expect(await lookUp(token)).toBeUndefined();
  });

  test("are nobody's business but their user's", async () => {
    const colleagueId = testStore.newId();
    const colleague = servicesOf(testStore, userOf(caller, colleagueId));
    await expect(own.users.createPersonalAccessToken({ userId: colleagueId })).rejects.toMatchObject({
      reason: ErrorReason.PERMISSION_DENIED,
      metadata: { permission: "create_personal_access_token" },
    });
    expect((await colleague.users.listPersonalAccessTokens({})).personalAccessTokens).toEqual([]);
    const find = async (userIds: string[]) =>
      (await own.users.listPersonalAccessTokens({ filter: { userIds } })).personalAccessTokens.length;
    expect(await find([colleagueId])).toBe(0);
    expect(await find([colleagueId, caller.subject.id])).toBe(1);
    const { id } = await newest();
    await expect(
      colleague.users.deletePersonalAccessToken({ personalAccessTokenId: id }),
    ).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
  });

  test("do not let a runner's exchange token be deleted among them", async () => {
    await own.runners.createRunner({ name: "north" });
    const { id } = await builderOf(testStore.store.reader)
      .selectFrom("token")
      .select("id")
      .where("kind", "=", "exchange")
      .executeTakeFirstOrThrow();
    await expect(own.users.deletePersonalAccessToken({ personalAccessTokenId: id })).rejects.toMatchObject({
      reason: ErrorReason.NOT_FOUND,
    });
  });
});

describe("the authenticated identity", () => {
  test("is the caller's user and organization", async () => {
    expect(await own.identity.getAuthenticatedIdentity({})).toMatchObject({
      subject: { id: caller.subject.id, principal: caller.subject.principal },
      organizationId: caller.organizationId,
    });
  });
});
