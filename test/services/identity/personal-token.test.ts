import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { announceTokenEnds } from "../../../src/jobs/token-expiry.ts";
import { findTokenByHash } from "../../../src/store/identity/token.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
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

describe("a token that is renewed", () => {
  const renew = async (validForMs: number) =>
    own.users.renewPersonalAccessToken({
      personalAccessTokenId: (await newest()).id,
      ...(validForMs > 0 && { validFor: durationFromMs(validForMs) }),
    });
  const make = async (validForMs: number) => {
    const { token } = await own.users.createPersonalAccessToken({ validFor: durationFromMs(validForMs) });
    return token;
  };

  test("holds from now on, under the same value, also after its end", async () => {
    const value = await make(DAY_MS);
    testStore.clock.now += 2 * DAY_MS;
    const { personalAccessToken } = await renew(0);
    const endsAt = testStore.clock.now + 30 * DAY_MS;
    expect(personalAccessToken?.expiresAt).toEqual(timestampFromMs(endsAt));
    expect((await newest()).expiresAt).toEqual(timestampFromMs(endsAt));
    expect(await lookUp(value)).toMatchObject({ expires_at: endsAt });
    expect((await testStore.history(caller)).audit.at(-1)).toMatchObject({
      subject_type: "personal_token",
      diff: expect.stringContaining("expiresAt"),
    });
  });

  test("is renewed for 90 days at most, and never for less than it holds", async () => {
    await make(10 * DAY_MS);
    await expect(renew(10 * DAY_MS - 1)).rejects.toMatchObject({ reason: ErrorReason.VALUE_UNUSABLE });
    await renew(10 * DAY_MS);
    await renew(10 * DAY_MS + 1);
    await renew(90 * DAY_MS);
    await expect(renew(90 * DAY_MS + 1)).rejects.toMatchObject({ reason: ErrorReason.VALUE_UNUSABLE });
  });

  test("is neither somebody else's nor a disabled one", async () => {
    await make(DAY_MS);
    const { id } = await newest();
    const colleague = servicesOf(testStore, userOf(caller, testStore.newId()));
    await expect(
      colleague.users.renewPersonalAccessToken({ personalAccessTokenId: id }),
    ).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
    await testStore.store.write(SYSTEM, "test", ({ db, now }) =>
      builderOf(db).updateTable("token").set({ disabled_at: now }).where("id", "=", id).execute(),
    );
    await expect(renew(0)).rejects.toMatchObject({ reason: ErrorReason.PHASE_UNSUITABLE });
  });
});

describe("the end of a token", () => {
  /** The subjects of what was announced so far. */
  const announced = async () => {
    const { audit, events } = await testStore.history(caller);
    const rows = audit.filter(({ operation }) => operation === "job/token-end");
    return rows.map(({ subject_id, sequence }) => ({
      id: subject_id,
      event: events.find((each) => each.sequence === sequence),
    }));
  };
  const announce = () => announceTokenEnds(testStore.store, testStore.clock.now);

  test("is announced once, 7 days before it, and again after a renewal", async () => {
    await own.users.createPersonalAccessToken({ validFor: durationFromMs(30 * DAY_MS) });
    const { id } = await newest();
    testStore.clock.now += 23 * DAY_MS - 1;
    expect(await announce()).toBe(0);
    testStore.clock.now += 1;
    expect([await announce(), await announce()]).toEqual([1, 0]);
    const [first] = await announced();
    expect(first).toMatchObject({ id, event: { kind: "updated", owner_id: caller.subject.id } });
    await own.users.renewPersonalAccessToken({ personalAccessTokenId: id });
    expect(await announce()).toBe(0);
    testStore.clock.now += 23 * DAY_MS;
    expect(await announce()).toBe(1);
  });

  test("is not announced of tokens that are made for 7 days or less, disabled, expired, or of programs", async () => {
    await own.runners.createRunner({ name: "north" });
    await own.users.createPersonalAccessToken({ validFor: durationFromMs(7 * DAY_MS) });
    expect(await announce()).toBe(0);
    await own.users.createPersonalAccessToken({ validFor: durationFromMs(8 * DAY_MS) });
    testStore.clock.now += 9 * DAY_MS;
    expect(await announce()).toBe(0);
    await own.users.createPersonalAccessToken({ validFor: durationFromMs(8 * DAY_MS) });
    const { id } = await newest();
    await testStore.store.write(SYSTEM, "test", ({ db, now }) =>
      builderOf(db).updateTable("token").set({ disabled_at: now }).where("id", "=", id).execute(),
    );
    testStore.clock.now += 2 * DAY_MS;
    expect(await announce()).toBe(0);
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
