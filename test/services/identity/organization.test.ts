import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import {
  createOrganizationWithToken,
  createTokenAsOperator,
  findUsers,
} from "../../../src/services/access/organization-creation.ts";
import { hasOrganization } from "../../../src/store/identity/organization.ts";
import { findTokenByHash } from "../../../src/store/identity/token.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { findRunnerPage } from "../../../src/store/runner/runner-list.ts";
import { DAY_MS, openTestStore, type TestStore } from "../../harness/test-store.ts";

let testStore: TestStore;

beforeEach(() => {
  testStore = openTestStore();
});
afterEach(() => testStore.close());

const founding = {
  operation: "chartroom serve",
  organizationName: "Harbour",
  accountName: "Administrator",
  email: "admin@example.org",
};

function lookUp(value: string) {
  return findTokenByHash(testStore.store.reader, testStore.keys.readToken(value)?.hash ?? new Uint8Array());
}

describe("founding an organization", () => {
  test("makes an administrator, a token of 30 days and the runner for local runners, as the operator", async () => {
    const { store, keys, clock } = testStore;
    expect(await hasOrganization(store.reader)).toBe(false);
    const made = await createOrganizationWithToken(store, keys, founding);
    expect(await hasOrganization(store.reader)).toBe(true);
    expect(await findUsers(store.reader)).toEqual([
      {
        userId: made.userId,
        organizationId: made.organizationId,
        organizationName: "Harbour",
        name: "Administrator",
        email: "admin@example.org",
        role: 1,
        suspendedAt: null,
        blockedAt: null,
      },
    ]);
    expect(await lookUp(made.token)).toMatchObject({
      organization_id: made.organizationId,
      subject_id: made.userId,
      account_id: made.accountId,
      read_only: 0,
      expires_at: clock.now + 30 * DAY_MS,
    });
    const listed = await findRunnerPage(store.reader, made, { creatorIds: [], kinds: [] }, undefined, 10);
    const runners = await Promise.all(listed.map((row) => row.read()));
    expect(runners).toMatchObject([{ name: "Local runners", kind: RunnerKind.LOCAL_CONFIGURATION }]);
    expect(runners[0]?.creator).toBeUndefined();
    const { audit, events } = await testStore.history(made);
    expect(audit).toMatchObject(
      ["organization", "member", "runner", "personal_token"].map((subject_type, index) => ({
        sequence: index + 1,
        subject_type,
        operation: "chartroom serve",
        actor_id: "operator",
      })),
    );
    expect(events).toHaveLength(4);
  });

  test("takes an account that has the email already for the second organization too", async () => {
    const { store, keys } = testStore;
    const first = await createOrganizationWithToken(store, keys, founding);
    const second = await createOrganizationWithToken(store, keys, { ...founding, accountName: "Someone" });
    expect(second.accountId).toBe(first.accountId);
    expect(second.organizationId).not.toBe(first.organizationId);
    expect((await findUsers(store.reader)).map(({ userId, name }) => [userId, name])).toEqual([
      [first.userId, "Administrator"],
      [second.userId, "Administrator"],
    ]);
  });

  test("leaves nothing when the token would hold too long", async () => {
    const { store, keys } = testStore;
    const tooLong = { ...founding, validForMs: 91 * DAY_MS };
    await expect(createOrganizationWithToken(store, keys, tooLong)).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
    });
    for (const table of ["organization", "account", "member", "runner", "token", "audit_log"] as const) {
      expect(await builderOf(store.reader).selectFrom(table).selectAll().execute()).toEqual([]);
    }
  });
});

describe("issuing a token as the operator", () => {
  test("makes one for the user, in the user's organization", async () => {
    const { store, keys, clock } = testStore;
    const { userId, organizationId } = await createOrganizationWithToken(store, keys, founding);
    const token = await createTokenAsOperator(store, keys, {
      userId,
      description: "script",
      validForMs: 90 * DAY_MS,
      readOnly: true,
    });
    expect(await lookUp(token)).toMatchObject({
      organization_id: organizationId,
      subject_id: userId,
      read_only: 1,
      expires_at: clock.now + 90 * DAY_MS,
    });
    const { audit } = await testStore.history({ organizationId });
    expect(audit.at(-1)).toMatchObject({ operation: "chartroom token create", actor_id: "operator" });
  });

  test("refuses a user that does not exist, and a time past 90 days", async () => {
    const { store, keys } = testStore;
    const { userId } = await createOrganizationWithToken(store, keys, founding);
    const issue = (id: string, validForMs: number) =>
      createTokenAsOperator(store, keys, { userId: id, description: "", validForMs });
    await expect(issue(testStore.newId(), DAY_MS)).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
    await expect(issue(userId, 90 * DAY_MS + 1)).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
    });
  });
});
