import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Project } from "#gen/service/v1/project_pb.js";
import {
  CreateProjectRequestSchema,
  type CreateProjectsResponse,
  ProjectService,
} from "#gen/service/v1/project_service_pb.js";
import { valueUnusable } from "../../../src/domain/error.ts";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { newProject } from "../../../src/domain/project/project.ts";
import { PART_MS } from "../../../src/services/call/call.ts";
import { repeatableKey } from "../../../src/services/call/idempotency.ts";
import { writeEachAsCaller } from "../../../src/services/call/write-each.ts";
import { insertProject } from "../../../src/store/project/project.ts";
import type { WriteTransaction } from "../../../src/store/store.ts";
import { afterWrites } from "../../harness/after-writes.ts";
import { contextOf, openTestStore, type TestStore } from "../../harness/test-store.ts";

const NAMES = ["a", "b", "refused", "c", "d", "e"];
const HASH = new Uint8Array(32).fill(1);
const CONTEXT = { case: "contextUrl" as const, value: { url: "https://git.example.org/a/b" } };
const method = ProjectService.method.createProjects;

let opened: TestStore;
let caller: Caller;
let leaving: AbortController;
beforeEach(async () => {
  opened = openTestStore();
  caller = await opened.createOrganization("batch");
  leaving = new AbortController();
});
afterEach(() => opened.close());

/** Writes one project, so slowly that it fills a transaction. */
async function write(tx: WriteTransaction, { organizationId, subject: creator }: Caller, name: string) {
  const began = performance.now();
  while (performance.now() - began < PART_MS);
  if (name === "refused") throw valueUnusable("name", "the name is refused");
  const project = newProject(
    create(CreateProjectRequestSchema, { name, initializer: { specs: [{ spec: CONTEXT }] } }),
    {
      id: tx.newId(),
      organizationId,
      creator,
      now: tx.now,
    },
  );
  return insertProject(tx, caller, project);
}

/** Creates the projects under a key, unless that is undefined. */
async function createAll(key: string | undefined, hash = HASH) {
  const ctx = contextOf(method, caller, leaving.signal);
  if (key !== undefined) ctx.values.set(repeatableKey, { key, hashes: [hash] });
  const response = await writeEachAsCaller<string, Project>(opened.store, ctx, {
    elements: NAMES,
    write,
    respond: (createdProjects, failed) => ({
      createdProjects,
      failedProjects: failed.map(({ element: name, index, error }) => ({ index, name, error })),
    }),
    count(response) {
      const { createdProjects, failedProjects } = response as CreateProjectsResponse;
      return createdProjects.length + failedProjects.length;
    },
  });
  const replayed = ctx.responseHeader.get("idempotency-replayed");
  return { response: create(method.output, response as CreateProjectsResponse), replayed };
}

/** How many projects the batches have created. */
async function created() {
  const { audit } = await opened.history(caller);
  return audit.filter(({ operation }) => operation.endsWith("/CreateProjects")).length;
}

const whole = { names: ["a", "b", "c", "d", "e"], failed: [{ index: 2, name: "refused" }] };
const summary = ({ createdProjects, failedProjects }: CreateProjectsResponse) => ({
  names: createdProjects.map((project) => project.metadata?.name),
  failed: failedProjects.map(({ index, name }) => ({ index, name })),
});

/** Ends the call after a number of its writes, each of one element. */
function leaveAfter(writes: number): void {
  let left = writes;
  const leave = afterWrites(opened.store, () => {
    left -= 1;
    if (left > 0) return;
    leaving.abort(new ConnectError("the client left", Code.Canceled));
    leave();
  });
}

describe("a batch that takes several transactions", () => {
  test.each([undefined, "key"])("answers all its elements in their order, with the key %s", async (key) => {
    const { response, replayed } = await createAll(key);
    expect(summary(response)).toEqual(whole);
    expect(replayed).toBeNull();
    expect(await created()).toBe(5);
  });

  test("is replayed under its key, and refused to another request with it", async () => {
    const { response: first } = await createAll("key");
    const { response, replayed } = await createAll("key");
    expect(response).toEqual(first);
    expect(replayed).toBe("true");
    expect(await created()).toBe(5);
    await expect(createAll("key", new Uint8Array(32))).rejects.toThrow("the idempotency key was used");
  });

  test("lets other writes commit between its own", async () => {
    let parts = 0;
    // Waits for them after its third part, so that they come first however slowly they get a connection.
    const leave = afterWrites(opened.store, async (operation) => {
      if (operation === "other") return;
      parts += 1;
      if (parts === 3) await other;
    });
    const batch = createAll(undefined);
    let others = 0;
    const other = (async () => {
      while (others < 2) {
        await opened.store.write({ id: caller.subject.id, principal: 1 }, "other", async () => undefined);
        others += 1;
      }
      return created();
    })();
    const countThen = await other;
    await batch;
    leave();
    expect(countThen).toBeLessThan(5);
  });

  test.each([1, 2, 3])("goes on under its key where it ended, after %d of its commits", async (commits) => {
    leaveAfter(commits);
    await expect(createAll("key")).rejects.toThrow();
    const before = await created();
    // The third element is refused.
    expect(before).toBe(Math.min(commits, 2));
    leaving = new AbortController();
    const { response, replayed } = await createAll("key");
    expect(summary(response)).toEqual(whole);
    expect(replayed).toBeNull();
    expect(await created()).toBe(5);
    const { response: again, replayed: isReplay } = await createAll("key");
    expect(again).toEqual(response);
    expect(isReplay).toBe("true");
  });

  test("is written once by two requests with its key at once", async () => {
    const [one, other] = await Promise.all([createAll("key"), createAll("key")]);
    expect(summary(one.response)).toEqual(whole);
    expect(other.response).toEqual(one.response);
    expect(await created()).toBe(5);
  });
});
