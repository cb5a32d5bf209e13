import { connect, type Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { RunnerService } from "#gen/service/v1/runner_service_pb.js";
import { openData } from "../../src/commands/open-data.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { post, reasonOf, repository } from "../harness/call.ts";
import { dataConfigOf } from "../harness/data-config.ts";
import { addOrganization } from "../harness/organization.ts";
import { withRawData } from "../harness/raw-data.ts";
import { type ReachableServer, startHostedServer, startServer, stopAll } from "../harness/server.ts";
import { type CopiedWorld, worldToCopy } from "./copied-world.ts";
import { everyOperation } from "./every-operation.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer({ args: ["--allow-organization-creation"] });
});
afterAll(stopAll);

const keyed = (key: string) => ({ "idempotency-key": key });
const createProject = (name: string, key: string, token = server.token) =>
  post(server, "ProjectService/CreateProject", project(name), token, keyed(key));
const project = (name: string) => ({
  name,
  initializer: repository("https://git.example.org/team/ship.git"),
});

async function projectsNamed(
  name: string,
  to: Pick<ReachableServer, "url" | "token"> = server,
): Promise<number> {
  const { body } = await post(to as ReachableServer, "ProjectService/ListProjects", {
    filter: { search: name },
    count: { include: true },
  });
  return body.count.value;
}

/** Fields in which answers carry a secret, this once. */
const SECRETS = ["token", "exchangeToken", "environmentToken", "secret", "inviteId"];

/** An answer as it may be kept. */
const withoutSecrets = (body: unknown): unknown =>
  JSON.parse(
    JSON.stringify(body, (name, value) => {
      if (SECRETS.includes(name) && typeof value === "string") return "";
      // Those of leased work.
      return name === "secrets" ? value.map((secret: object) => ({ ...secret, value: "" })) : value;
    }),
  );

const writers = everyOperation().filter(
  ([name, { built, method, refusal }]) =>
    built &&
    // Nothing is kept of what was refused.
    refusal === undefined &&
    // A stream has no answer that could be kept: it is resumed by what its request says.
    method.methodKind === "unary" &&
    method.idempotency !== Idempotency.NO_SIDE_EFFECTS &&
    // The first call takes away the token with which a second could come.
    name !== "WorkService/Register" &&
    name !== "OrganizationService/LeaveOrganization",
);

let copyWorld: () => Promise<CopiedWorld>;
beforeAll(async () => {
  copyWorld = await worldToCopy("Repeated");
});

describe.each(writers)("%s, repeated with its key", (name, operation) => {
  test("answers the first answer again, and does nothing", async () => {
    const { server, token, world } = await copyWorld();
    const request = operation.request(world);
    const call = () => post(server, name, request, operation.token?.(world) ?? token, keyed("once"));
    const first = await call();
    const second = await call();
    await server.stop();
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(first.header.get("idempotency-replayed")).toBe(null);
    expect(second.header.get("idempotency-replayed")).toBe("true");
    const omitted = second.header.get("idempotency-secret-omitted");
    const kept = withoutSecrets(first.body);
    expect(omitted).toBe(JSON.stringify(kept) === JSON.stringify(first.body) ? null : "true");
    expect(second.body).toEqual(kept);
    expect(JSON.stringify(second.body)).not.toContain("cr_");
  });
});

describe("an idempotency key", () => {
  test("with another request is refused as used", async () => {
    await createProject("reused", "a");
    const answer = await createProject("another", "a");
    expect([answer.status, answer.body.code, reasonOf(answer)]).toEqual([
      409,
      "already_exists",
      "IDEMPOTENCY_KEY_REUSED",
    ]);
    expect(await projectsNamed("another")).toBe(0);
  });

  test("belongs to one caller and one operation", async () => {
    const { token } = await addOrganization(server, "Another caller");
    const first = await createProject("scoped", "b");
    const foreign = await createProject("scoped", "b", token);
    expect([foreign.status, foreign.header.get("idempotency-replayed")]).toEqual([200, null]);
    expect(foreign.body.project.id).not.toBe(first.body.project.id);
    const runner = await post(
      server,
      "RunnerService/CreateRunner",
      { name: "scoped" },
      server.token,
      keyed("b"),
    );
    expect([runner.status, runner.header.get("idempotency-replayed")]).toEqual([200, null]);
  });

  test("knows a request in every form that it can take", async () => {
    const asJson = await post(
      server,
      "RunnerService/CreateRunner",
      '{"name":"forms","kind":"RUNNER_KIND_REMOTE"}',
      server.token,
      keyed("c"),
    );
    const asOtherJson = await post(
      server,
      "RunnerService/CreateRunner",
      '{ "kind": 2, "name": "forms" }',
      server.token,
      keyed("c"),
    );
    expect(asOtherJson.header.get("idempotency-replayed")).toBe("true");
    const request = create(RunnerService.method.createRunner.input, { name: "forms", kind: 2 });
    const binary = await fetch(`${server.url}/api/service.v1.RunnerService/CreateRunner`, {
      method: "POST",
      headers: {
        "content-type": "application/proto",
        authorization: `Bearer ${server.token}`,
        ...keyed("c"),
      },
      body: toBinary(RunnerService.method.createRunner.input, request) as BodyInit,
    });
    expect([binary.status, binary.headers.get("idempotency-replayed")]).toEqual([200, "true"]);
    const client = createClient(RunnerService, createGrpcTransport({ baseUrl: server.url }));
    let replayed: string | null = null;
    const { runner } = await client.createRunner(request, {
      headers: { authorization: `Bearer ${server.token}`, ...keyed("c") },
      onHeader: (headers) => {
        replayed = headers.get("idempotency-replayed");
      },
    });
    expect([replayed, runner?.runnerId]).toEqual(["true", asJson.body.runner.runnerId]);
  });

  test("keeps nothing of a failure", async () => {
    const failing = () =>
      post(server, "ProjectService/CreateProject", { name: "" }, server.token, keyed("d"));
    expect((await failing()).status).toBe(400);
    expect((await failing()).header.get("idempotency-replayed")).toBe(null);
    expect((await createProject("after the failure", "d")).status).toBe(200);
  });

  test.each([
    ["empty", ""],
    ["of 256 characters", "k".repeat(256)],
    ["with a blank", "a b"],
    ["with what is no ASCII", "\u00e9"],
  ])("%s is refused", async (_, key) => {
    const answer = await createProject("refused", key);
    expect([answer.status, reasonOf(answer)]).toEqual([400, "VALUE_UNUSABLE"]);
  });

  test("of 255 characters is taken, and reads ignore any", async () => {
    expect((await createProject("longest", "k".repeat(255))).status).toBe(200);
    const read = await post(server, "ProjectService/ListProjects", {}, server.token, keyed("a b"));
    expect([read.status, read.header.get("idempotency-replayed")]).toEqual([200, null]);
  });

  test("makes one effect of 100 parallel copies", async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => createProject("parallel", "e")));
    expect(new Set(answers.map(({ body }) => body.project.id)).size).toBe(1);
    expect(answers.filter(({ header }) => header.get("idempotency-replayed") === null)).toHaveLength(1);
    expect(await projectsNamed("parallel")).toBe(1);
  });

  test("leaves one audit row and one event, however often it is repeated", async () => {
    const { body } = await createProject("audited", "f");
    await createProject("audited", "f");
    const { store } = await openData(dataConfigOf(server.dataDir));
    try {
      const rows = await builderOf(store.reader)
        .selectFrom("audit_log")
        .select("operation")
        .where("subject_id", "=", body.project.id)
        .execute();
      expect(rows).toEqual([{ operation: "service.v1.ProjectService/CreateProject" }]);
    } finally {
      await store.close();
    }
  });

  test("is forgotten after 24 hours", async () => {
    const first = await createProject("old", "g");
    const { store } = await openData(dataConfigOf(server.dataDir));
    try {
      await store.write({ id: "test", principal: 0 }, "test", async (tx) => {
        await builderOf(tx.db)
          .updateTable("idempotency")
          .set({ created_at: tx.now - 24 * 3600 * 1000 })
          .where("key", "=", "g")
          .execute();
      });
    } finally {
      await store.close();
    }
    const second = await createProject("old", "g");
    expect([second.status, second.header.get("idempotency-replayed")]).toEqual([200, null]);
    expect(second.body.project.id).not.toBe(first.body.project.id);
  });
});

describe("a server that is killed", () => {
  test("between commit and answer gives the kept answer after its restart", async () => {
    const killed = await startServer();
    const { token } = killed;
    const send = (to: ReachableServer, name: string) =>
      post(to, "ProjectService/CreateProject", project(name), token, keyed(name));
    const heard = Array.from({ length: 30 }, (_, index) => `killed-heard-${index}`);
    const unheard = Array.from({ length: 30 }, (_, index) => `killed-unheard-${index}`);
    const silent = unheard.map((name) => sendUnheard(killed, project(name), name));
    const settled = Promise.allSettled(heard.map((name) => send(killed, name)));
    const firstKey = await firstCommitted(killed.dataDir, "killed-unheard-");
    await killed.kill();
    for (const socket of silent) socket.destroy();
    const answered = new Map(
      (await settled).flatMap((result, index) =>
        result.status === "fulfilled" ? [[heard[index], result.value.body.project.id] as const] : [],
      ),
    );
    const restarted = await startServer({ dataDir: killed.dataDir });
    for (const name of [...heard, ...unheard]) {
      const { status, header, body } = await send(restarted, name);
      expect(status).toBe(200);
      const isReplay = header.get("idempotency-replayed") === "true";
      if (answered.has(name)) expect([isReplay, body.project.id]).toEqual([true, answered.get(name)]);
      if (name === firstKey) expect(isReplay).toBe(true);
    }
    expect(await projectsNamed("killed-", { url: restarted.url, token })).toBe(heard.length + unheard.length);
    await restarted.stop();
  });
});

/** Sends CreateProject on a connection from which nobody reads the response. */
function sendUnheard(server: ReachableServer, request: object, key: string): Socket {
  const { port } = new URL(server.url);
  const body = JSON.stringify(request);
  const socket = connect(Number(port), "127.0.0.1").on("error", () => {});
  const head = [
    "POST /api/service.v1.ProjectService/CreateProject HTTP/1.1",
    `host: 127.0.0.1:${port}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    `authorization: Bearer ${server.token}`,
    `idempotency-key: ${key}`,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  return socket;
}

/** Returns the first key with this prefix whose change another process sees. */
function firstCommitted(dataDir: string, prefix: string): Promise<string> {
  return withRawData(dataDir, async (raw) => {
    for (;;) {
      const [row] = await raw.rows<{ key: string }>(
        "select key from idempotency where key like ? limit 1",
        `${prefix}%`,
      );
      if (row) return row.key;
      await setImmediate();
    }
  });
}
