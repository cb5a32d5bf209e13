import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { WorkflowService as WorkflowContract } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { keysFrom } from "../../../src/keys.ts";
import { findValidWebhookSecrets } from "../../../src/services/workflow/webhook-secret.ts";
import {
  DamagedWebhookSecret,
  reencryptWebhookSecrets,
} from "../../../src/services/workflow/webhook-secret-reencryption.ts";
import { WorkflowService } from "../../../src/services/workflow/workflow-service.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import {
  findWebhookSecretHolders,
  findWebhookSecrets,
  updateWebhookSecrets,
} from "../../../src/store/workflow/webhook-secret.ts";
import { findWorkflow } from "../../../src/store/workflow/workflow.ts";
import { openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";

const DAY_MS = 24 * 3600 * 1000;
const FORM = /^whsec_[A-Za-z0-9+/]{43}=$/;

let testStore: TestStore;
let caller: Caller;
let workflows: ReturnType<typeof operations>;
beforeAll(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  workflows = operations(caller);
});
afterAll(() => testStore.close());

const operations = (of: Caller) =>
  operationsOf(
    WorkflowContract,
    new WorkflowService({ ...testStore.deps, draining: new AbortController().signal }),
    of,
  );

async function make(): Promise<string> {
  const step = { step: { case: "task", value: { command: "true" } } } as const;
  const action = { limits: { maxParallel: 1, maxTotal: 1 }, steps: [step] };
  const { workflow } = await workflows.createWorkflow({ name: "Nightly", action });
  return workflow?.id ?? "";
}

const secretOf = async (workflowId: string) =>
  (await workflows.getWorkflowWebhookSecret({ workflowId })).secret;
const rotate = async (workflowId: string) =>
  (await workflows.rotateWorkflowWebhookSecret({ workflowId })).secret;
const open = (workflowId: string, { keys, clock }: TestStore = testStore) =>
  findValidWebhookSecrets(testStore.store.reader, workflowId, keys, clock.now);
const row = (workflowId: string) =>
  builderOf(testStore.store.reader)
    .selectFrom("workflow_secret")
    .selectAll()
    .where("workflow_id", "=", workflowId)
    .executeTakeFirstOrThrow();

describe("the webhook secret of a workflow", () => {
  test("is one of its own from the beginning, and answered alike each time", async () => {
    const [one, other] = [await make(), await make()];
    expect(await secretOf(one)).toMatch(FORM);
    expect(await secretOf(one)).toBe(await secretOf(one));
    expect(await secretOf(one)).not.toBe(await secretOf(other));
    expect(await open(one)).toEqual([await secretOf(one)]);
  });

  test("is known to who was given it, and after a rotation to them for as long as it verifies", async () => {
    const id = await make();
    const known = async () => {
      const workflow = await findWorkflow(testStore.store.reader, caller, id);
      if (!workflow) throw new Error("the workflow is gone");
      const { reader } = testStore.store;
      const holders = await findWebhookSecretHolders(reader, workflow.id, testStore.clock.now);
      return holders.map((subject) => subject.id);
    };
    expect(await known()).toEqual([]);
    await secretOf(id);
    await secretOf(id);
    expect(await known()).toEqual([caller.subject.id]);
    const colleague = create(SubjectSchema, {
      ...caller.subject,
      id: "01990000-0000-7000-8000-00000000c011",
    });
    await testStore.store.write(SYSTEM, "test", async (tx) => {
      const workflow = await findWorkflow(tx.db, caller, id);
      const sealed = await findWebhookSecrets(tx.db, id);
      if (!workflow || !sealed) throw new Error("the workflow is gone");
      const previous = { ...sealed.current, until: tx.now + DAY_MS };
      await updateWebhookSecrets(tx, caller, workflow, { ...sealed, previous }, colleague);
    });
    expect(await known()).toEqual([colleague.id, caller.subject.id]);
    testStore.clock.now += DAY_MS - 1;
    expect(await known()).toEqual([colleague.id, caller.subject.id]);
    testStore.clock.now += 1;
    expect(await known()).toEqual([colleague.id]);
  });

  test("verifies for 24 hours alongside the one that takes its place, and not a moment longer", async () => {
    const id = await make();
    const first = await secretOf(id);
    const second = await rotate(id);
    const rotatedAt = testStore.clock.now;
    expect(second).toMatch(FORM);
    expect(await secretOf(id)).toBe(second);
    expect(await open(id)).toEqual([second, first]);
    testStore.clock.now = rotatedAt + DAY_MS - 1;
    expect(await open(id)).toEqual([second, first]);
    testStore.clock.now = rotatedAt + DAY_MS;
    expect(await open(id)).toEqual([second]);
  });

  test("is gone at once when it is replaced a second time within them", async () => {
    const id = await make();
    const first = await secretOf(id);
    const second = await rotate(id);
    const third = await rotate(id);
    expect(await open(id)).toEqual([third, second]);
    expect([second, third]).not.toContain(first);
  });

  test("is recorded when it is read and when it is replaced, never with its value", async () => {
    const id = await make();
    await secretOf(id);
    await rotate(id);
    const { audit, events } = await testStore.history(caller);
    const rows = audit.filter(({ subject_id }) => subject_id === id);
    expect(rows.map(({ operation, actor_id }) => [operation.split("/")[1], actor_id])).toEqual(
      ["CreateWorkflow", "GetWorkflowWebhookSecret", "RotateWorkflowWebhookSecret"].map((name) => [
        name,
        caller.subject.id,
      ]),
    );
    expect(rows.slice(1).map(({ diff }) => JSON.parse(diff))).toEqual([
      {},
      { webhookSecret: ["(secret)", "(new secret)"] },
    ]);
    expect(events.filter(({ resource_id }) => resource_id === id).map(({ kind }) => kind)).toEqual([
      "created",
      "updated",
    ]);
    expect(JSON.stringify(audit)).not.toContain("whsec_");
  });

  test("is no secret of a workflow that does not exist", async () => {
    expect(await open("0191f7a0-5c3e-7d1a-8b2f-000000000001")).toEqual([]);
  });

  test("is not replaced while the workflow is pending deletion, and still answered", async () => {
    const id = await make();
    await workflows.deleteWorkflow({ workflowId: id });
    expect(await secretOf(id)).toMatch(FORM);
    await expect(rotate(id)).rejects.toMatchObject({ reason: ErrorReason.PENDING_DELETION });
  });
});

describe("webhook secrets in the database", () => {
  test("open nowhere but in their own column of their own row", async () => {
    const [one, other] = [await make(), await make()];
    await rotate(one);
    const { store } = testStore;
    const { sealed, previous_sealed } = await row(one);
    const set = (id: string, columns: object) =>
      store.write({ id: "test", principal: 0 }, "test", ({ db }) =>
        builderOf(db).updateTable("workflow_secret").set(columns).where("workflow_id", "=", id).execute(),
      );
    const before = await row(other);
    await set(other, { sealed });
    await expect(open(other)).rejects.toThrow();
    await set(other, { sealed: before.sealed });
    await set(one, { sealed: previous_sealed });
    await expect(open(one)).rejects.toThrow();
    await set(one, { sealed });
    expect(await open(one)).toHaveLength(2);
  });

  test("are sealed again under the newest key, without those that verify no more", async () => {
    const [plain, overlapping, expired] = [await make(), await make(), await make()];
    await rotate(expired);
    testStore.clock.now += DAY_MS;
    await rotate(overlapping);
    const before = {
      plain: await open(plain),
      overlapping: await open(overlapping),
      expired: await open(expired),
    };
    const { store } = testStore;
    const newer = keysFrom(new Uint8Array(32).fill(9), new Uint8Array(32).fill(7));
    const count = (await builderOf(store.reader).selectFrom("workflow_secret").selectAll().execute()).length;
    const history = (await testStore.history(caller)).audit.length;

    expect(await reencryptWebhookSecrets(store, newer)).toBe(count);
    expect(await reencryptWebhookSecrets(store, newer)).toBe(0);

    const openedAnew = (id: string) => open(id, { ...testStore, keys: keysFrom(new Uint8Array(32).fill(9)) });
    expect({
      plain: await openedAnew(plain),
      overlapping: await openedAnew(overlapping),
      expired: await openedAnew(expired),
    }).toEqual(before);
    expect([await row(plain), await row(expired)].map((each) => each.previous_sealed)).toEqual([null, null]);
    expect(await row(overlapping)).toMatchObject({ key_id: newer.id, previous_key_id: newer.id });
    expect((await testStore.history(caller)).audit).toHaveLength(history);
  });

  test("that were changed are reported by the workflow's id, and no other is lost", async () => {
    const { store } = testStore;
    const newest = keysFrom(
      new Uint8Array(32).fill(11),
      new Uint8Array(32).fill(9),
      new Uint8Array(32).fill(7),
    );
    const damaged = await make();
    await store.write({ id: "test", principal: 0 }, "test", ({ db }) =>
      builderOf(db)
        .updateTable("workflow_secret")
        .set({ sealed: new Uint8Array(80) })
        .where("workflow_id", "=", damaged)
        .execute(),
    );
    const act = reencryptWebhookSecrets(store, newest);
    await expect(act).rejects.toThrow(DamagedWebhookSecret);
    await expect(act).rejects.toThrow(damaged);
  });
});
