import { Code, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { ResourceOperation, ResourceType } from "#gen/service/v1/event_pb.js";
import { pruneEvents } from "../../src/jobs/retention/event-pruning.ts";
import { atTime } from "../harness/at-time.ts";
import { post } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import {
  type ReachableServer,
  runHostedCommand,
  startHostedServer,
  startServer,
  stopAll,
} from "../harness/server.ts";
import { sequences, watch } from "../harness/watch.ts";

const DAY_MS = 24 * 3600 * 1000;

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

const connect = (to: Pick<ReachableServer, "url"> = server) =>
  createConnectTransport({ baseUrl: `${to.url}/api`, httpVersion: "1.1" });

/** A new organization, so that no test sees the events of another. */
async function organization(name: string) {
  const { token, organizationId, userId } = await addOrganization(server, `${name} ${v7()}`);
  const caller = { url: server.url, token };
  return {
    token,
    organizationId,
    userId,
    async runner(): Promise<string> {
      const answer = await post(caller, "RunnerService/CreateRunner", { name: "a runner" });
      if (answer.status !== 200) throw new Error(JSON.stringify(answer));
      return answer.body.runner.runnerId;
    },
    call: (operation: string, body: object) => post(caller, operation, body),
    /** Number of the newest entry of the trail. */
    async head(): Promise<number> {
      const { body } = await post(caller, "EventService/ListAuditLogs", { pagination: { pageSize: 1 } });
      return Number(body.entries[0].sequence);
    },
  };
}

describe.each<[string, () => Transport]>([
  ["Connect over HTTP/1.1", () => connect()],
  ["Connect over HTTP/2", () => createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "2" })],
  ["gRPC", () => createGrpcTransport({ baseUrl: server.url })],
  ["gRPC-Web", () => createGrpcWebTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" })],
])("a stream of events over %s", (_, transport) => {
  test("tells what happens from the moment on at which it has begun", async () => {
    const own = await organization("live");
    const stream = watch(transport(), own.token);
    await stream.opened;
    const runnerId = await own.runner();
    const { body } = await own.call("RunnerConfigurationService/CreateEnvironmentClass", {
      runnerId,
      displayName: "Small",
      description: "a machine",
    });
    await own.call("RunnerConfigurationService/UpdateEnvironmentClass", {
      environmentClassId: body.id,
      displayName: "Smaller",
    });
    await own.call("RunnerService/DeleteRunner", { runnerId });
    const seen = (await stream.until(7)).map(({ operation, resourceType, resourceId }) => [
      operation,
      resourceType,
      resourceId,
    ]);
    expect(seen).toContainEqual([ResourceOperation.CREATE, ResourceType.RUNNER, runnerId]);
    expect(seen).toContainEqual([ResourceOperation.CREATE, ResourceType.ENVIRONMENT_CLASS, body.id]);
    expect(seen).toContainEqual([ResourceOperation.UPDATE, ResourceType.ENVIRONMENT_CLASS, body.id]);
    expect(seen.at(-1)).toEqual([ResourceOperation.DELETE, ResourceType.RUNNER, runnerId]);
    stream.cancel();
    expect((await stream.ended).code).toBe(Code.Canceled);
  });

  test("refuses a number that the record has not reached, and one below 0", async () => {
    const own = await organization("refused");
    const ahead = await watch(transport(), own.token, { afterSequence: BigInt((await own.head()) + 1) })
      .ended;
    expect([ahead.code, ahead.findDetails(ErrorDetailSchema)[0]?.reason]).toEqual([
      Code.InvalidArgument,
      ErrorReason.VALUE_UNUSABLE,
    ]);
    const negative = await watch(transport(), own.token, { afterSequence: -1n }).ended;
    expect([negative.code, negative.findDetails(ErrorDetailSchema)[0]?.reason]).toEqual([
      Code.InvalidArgument,
      ErrorReason.CONSTRAINT_VIOLATED,
    ]);
  });

  test("resumes over dropped connections, while others write, without a gap and without a repetition", async () => {
    const own = await organization("resumed");
    const first = await own.head();
    let isWriting = true;
    const writing = Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let made = 0; made < 40; made++) await own.runner();
      }),
    ).then(() => {
      isWriting = false;
    });
    const seen: number[] = [];
    for (let reads = 1; isWriting || seen.at(-1) !== (await own.head()); reads++) {
      const after = seen.at(-1) ?? first;
      const stream = watch(transport(), own.token, { afterSequence: BigInt(after) });
      // The connection drops after 1 to 23 events; who keeps the last number goes on after it.
      const wanted = 1 + (reads % 23);
      // A reader that keeps up finds fewer than that at the end.
      const left = writing.then(async () => stream.until(Math.min(wanted, (await own.head()) - after)));
      await Promise.race([stream.until(wanted), left]);
      stream.cancel();
      seen.push(...sequences(stream.messages));
    }
    await writing;
    const last = await own.head();
    expect(seen).toEqual(Array.from({ length: last - first }, (_, index) => first + 1 + index));
    expect(last - first).toBe(320);
  });
});

describe("a stream of events", () => {
  test("restricted to kinds tells only those, and nothing of another organization", async () => {
    const own = await organization("filtered");
    const other = await organization("other");
    const stream = watch(connect(), own.token, {
      resourceTypeFilters: [{ resourceType: ResourceType.PROJECT }],
    });
    const none = watch(connect(), own.token, { resourceTypeFilters: [{ resourceType: ResourceType.GROUP }] });
    await Promise.all([stream.opened, none.opened]);
    await other.call("ProjectService/CreateProject", project);
    await own.runner();
    const { body } = await own.call("ProjectService/CreateProject", project);
    const messages = await stream.until(1);
    expect(messages).toMatchObject([{ resourceType: ResourceType.PROJECT, resourceId: body.project.id }]);
    expect(none.messages).toEqual([]);
    stream.cancel();
    none.cancel();
  });

  test("tells what another process did", async () => {
    const own = await organization("neighbour");
    const stream = watch(connect(), own.token);
    await stream.opened;
    const made = await runHostedCommand([
      "token",
      "create",
      "--user",
      own.userId,
      "--data-dir",
      server.dataDir,
    ]);
    expect(made.code).toBe(0);
    const [message] = await stream.until(1);
    expect(message).toMatchObject({ resourceType: ResourceType.PERSONAL_ACCESS_TOKEN });
    stream.cancel();
  });

  test("says that history was pruned, and goes on behind it", async () => {
    const own = await organization("pruned");
    await own.runner();
    const pruned = await own.head();
    const later = Date.now() + 31 * DAY_MS;
    await atTime(server, later, (store) => pruneEvents(store, own, { days: 30, count: 0 }, later));
    const gapUpTo = (sequence: number) => ({
      operation: ResourceOperation.UNSPECIFIED,
      resourceType: ResourceType.ORGANIZATION,
      resourceId: own.organizationId,
      sequence: BigInt(sequence),
      historyPruned: { oldestSequence: BigInt(sequence + 1) },
    });
    const empty = watch(connect(), own.token, { afterSequence: 0n });
    const [only] = await empty.until(1);
    expect(only).toMatchObject(gapUpTo(pruned));
    await own.runner();
    expect(sequences(await empty.until(3))).toEqual([pruned + 1, pruned + 2]);
    empty.cancel();
    const behind = watch(connect(), own.token, { afterSequence: BigInt(pruned - 1) });
    const [gap] = await behind.until(3);
    expect(gap).toMatchObject(gapUpTo(pruned));
    behind.cancel();
    const exact = watch(connect(), own.token, { afterSequence: BigInt(pruned) });
    expect(sequences(await exact.until(2))).toEqual([pruned + 1, pruned + 2]);
    exact.cancel();
    expect((await own.call("EventService/ListAuditLogs", {})).body.entries).toHaveLength(
      Math.min(25, pruned + 2),
    );
  });

  test("ends when its token is revoked", async () => {
    const own = await organization("revoked");
    const { body } = await own.call("UserService/CreatePersonalAccessToken", { description: "short" });
    const stream = watch(connect(), body.token);
    await stream.opened;
    const { personalAccessTokens } = (await own.call("UserService/ListPersonalAccessTokens", {})).body;
    const { id } = personalAccessTokens.find((each: { description: string }) => each.description === "short");
    await own.call("UserService/DeletePersonalAccessToken", { personalAccessTokenId: id });
    expect((await stream.ended).code).toBe(Code.Unauthenticated);
  });

  test("ends with unavailable when the server drains, and is resumed at the next one", async () => {
    const first = await startServer();
    const make = (to: ReachableServer) =>
      post(to, "RunnerService/CreateRunner", { name: "a runner" }, first.token);
    const stream = watch(connect(first), first.token);
    await stream.opened;
    await make(first);
    await stream.until(2);
    const stopping = first.stop();
    const error = await stream.ended;
    expect([error.code, error.findDetails(ErrorDetailSchema)[0]?.reason]).toEqual([
      Code.Unavailable,
      ErrorReason.UNAVAILABLE,
    ]);
    expect(await stopping).toBe(0);
    const next = await startServer({ dataDir: first.dataDir });
    await make(next);
    const last = sequences(stream.messages).at(-1) ?? 0;
    const resumed = watch(connect(next), first.token, { afterSequence: BigInt(last) });
    expect(sequences(await resumed.until(2))).toEqual([last + 1, last + 2]);
    resumed.cancel();
    await next.stop();
  });
});

const project = {
  name: "ship",
  initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/ship.git" } }] },
};
