import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import type { CreateGroupRequest } from "#gen/service/v1/group_service_pb.js";
import {
  ApplyChangesRequestSchema,
  ResourceService as Contract,
} from "#gen/service/v1/resource_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { GroupService } from "../../../src/services/access/group/group-service.ts";
import { ResourceService } from "../../../src/services/access/resource/resource-service.ts";
import type { Store } from "../../../src/store/store.ts";
import { contextOf, openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";

let made: TestStore;
let caller: Caller;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
});
afterEach(() => made.close());

const requestOf = (count: number) =>
  create(ApplyChangesRequestSchema, {
    changes: Array.from({ length: count }, (_, index) => ({
      change: {
        case: "createGroup" as const,
        value: { organizationId: caller.organizationId, name: `group ${index}` },
      },
    })),
  });

test("changes of an organization are made one after the other, also behind those that fail", async () => {
  const begun: { organizationId: string; end: PromiseWithResolvers<unknown> }[] = [];
  const store: Pick<Store, "write"> = {
    write: (_actor, _operation, _fn, { locks = [] } = {}) => {
      const end = Promise.withResolvers<unknown>();
      begun.push({ organizationId: Array.isArray(locks) ? String(locks[0]) : "", end });
      return end.promise as Promise<never>;
    },
  };
  const service = new ResourceService({ store: store as Store }, () => () => ({}));
  const other = { ...caller, organizationId: v7() };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const apply = (by: Caller) =>
    operationsOf(Contract, service, by).applyChanges({ changes: requestOf(1).changes });
  const [first, second, third] = [apply(caller), apply(caller), apply(other)];
  await turn();
  expect(begun.map(({ organizationId }) => organizationId)).toEqual([
    caller.organizationId,
    other.organizationId,
  ]);
  begun[0]?.end.reject(new Error("refused"));
  await expect(first).rejects.toThrow("refused");
  await turn();
  expect(begun).toHaveLength(3);
  for (const { end } of begun.slice(1)) end.resolve({ result: { resources: [] } });
  expect(await Promise.all([second, third])).toMatchObject([{ resources: [] }, { resources: [] }]);
});

test("changes of a preview are made once and taken back, but for the first of them", async () => {
  const groups = new GroupService(made.deps);
  let calls = 0;
  const service = new ResourceService(made.deps, () => (request, ctx) => {
    calls += 1;
    return groups.createGroup(request as CreateGroupRequest, ctx);
  });
  const before = await made.history(caller);
  const { changes } = requestOf(20);
  const { resources } = await operationsOf(Contract, service, caller).previewChanges({ changes });
  expect(resources.map(({ after }) => after?.resource.value)).toMatchObject(
    changes.map(({ change }) => ({ name: (change.value as CreateGroupRequest).name })),
  );
  expect(calls).toBeLessThan(25);
  expect(await made.history(caller)).toEqual(before);
});

test("changes end where their caller waits no longer", async () => {
  const leaving = new AbortController();
  let calls = 0;
  const service = new ResourceService(made.deps, () => () => {
    calls += 1;
    leaving.abort();
    return { group: { id: v7() } };
  });
  const ctx = contextOf(Contract.method.applyChanges, caller, leaving.signal);
  await expect(service.applyChanges(requestOf(3), ctx)).rejects.toThrow();
  expect(calls).toBe(1);
});
