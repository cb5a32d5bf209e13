import { toBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { type Work, WorkSchema } from "#gen/runner/v1/work_pb.js";
import { WorkService as WorkContract } from "#gen/runner/v1/work_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { WorkService } from "../../../src/services/runner/work-service.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { type RegisteredRunner, registeredRunner, startedRun, workDependencies } from "./work-service.ts";

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  runner = await registeredRunner(made, caller);
});
afterEach(() => made.close());

const bytesOf = (work: Work | undefined) => (work ? toBinary(WorkSchema, work).length : 0);

/** The works that the runner is given at once by a server whose answers may have so many bytes. */
async function leaseWithin(pageBytes: number): Promise<Work[]> {
  const service = new WorkService({ ...workDependencies(made), pageBytes });
  const { leaseWork } = operationsOf(WorkContract, service, runner.caller);
  return (await leaseWork({ maxLeases: 32, wait: { seconds: 0n } })).works;
}

test("the leases of an answer have no more bytes together than a page, and the others come with the next", async () => {
  await startedRun(made, caller, { actions: 9 });
  const each = bytesOf(await runner.leaseOne());
  for (const [bytes, count] of [
    [2 * each - 1, 1],
    [2 * each, 2],
    [2 * each + 1, 2],
    [1, 1],
  ] as const) {
    const works = await leaseWithin(bytes);
    expect(works.map(bytesOf)).toEqual(Array(count).fill(each));
    // What the answer had no room for was not begun.
    expect(works.map(({ attempt }) => attempt)).toEqual(Array(count).fill(1));
  }
  expect(await leaseWithin(4 * each)).toHaveLength(2);
  const kept = await builderOf(made.store.reader).selectFrom("environment").select("id").execute();
  expect(kept).toHaveLength(9);
});
