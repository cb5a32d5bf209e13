import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { RunnerService as Contract } from "#gen/service/v1/runner_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { RunnerService } from "../../../src/services/access/runner-service.ts";
import { repeatableKey } from "../../../src/services/call/idempotency.ts";
import { countEnvironmentsOfRunner } from "../../../src/store/environment/environment.ts";
import { afterWrites } from "../../harness/after-writes.ts";
import { contextOf, openTestStore, type TestStore } from "../../harness/test-store.ts";
import { type Services, servicesOf } from "../services.ts";

const ENVIRONMENTS = 100;
const method = Contract.method.deleteRunner;

let opened: TestStore;
let caller: Caller;
let services: Services;
let runnerId: string;
beforeEach(async () => {
  opened = openTestStore();
  caller = await opened.createOrganization("removal");
  services = servicesOf(opened, caller);
  runnerId = await runnerWithEnvironments("large", ENVIRONMENTS);
});
afterEach(() => opened.close());

async function runnerWithEnvironments(name: string, count: number): Promise<string> {
  const { runnerId, classId } = await services.runnerWithClass(name);
  for (let made = 0; made < count; made++) {
    await services.environments.createEnvironment({ spec: { machine: { class: classId } } });
  }
  return runnerId;
}

function removeRunner({ id = runnerId, key = "", leaving = new AbortController() } = {}) {
  const ctx = contextOf(method, caller, leaving.signal);
  const request = create(method.input, { runnerId: id, force: true });
  if (key !== "") ctx.values.set(repeatableKey, { key, hashes: [Buffer.from(id)] });
  return new RunnerService({ ...opened.deps, draining: new AbortController().signal }).deleteRunner(
    request,
    ctx,
  );
}

const left = (id = runnerId) => countEnvironmentsOfRunner(opened.store.reader, caller, id, 1_000);

test("a runner with many environments loses them first, and a repetition goes on after a failure", async () => {
  const leaving = new AbortController();
  const leave = afterWrites(opened.store, () => {
    leaving.abort(new ConnectError("the client left", Code.Canceled));
  });
  expect(await left()).toBe(ENVIRONMENTS);
  await expect(removeRunner({ leaving })).rejects.toThrow();
  leave();
  expect(await left()).toBeLessThan(ENVIRONMENTS);
  expect((await services.runners.getRunner({ runnerId })).runner?.runnerId).toBe(runnerId);
  await removeRunner();
  expect(await left()).toBe(0);
  await expect(services.runners.getRunner({ runnerId })).rejects.toThrow("runner not found");
});

test("a request whose key was used for another runner deletes nothing", async () => {
  const other = await runnerWithEnvironments("other", 1);
  await removeRunner({ id: other, key: "key" });
  await expect(removeRunner({ key: "key" })).rejects.toThrow("the idempotency key was used");
  expect(await left()).toBe(ENVIRONMENTS);
});

test("a request that is repeated under its key answers as it did", async () => {
  expect(await removeRunner({ key: "key" })).toEqual({});
  expect(await removeRunner({ key: "key" })).toMatchObject({});
  expect(await left()).toBe(0);
});
