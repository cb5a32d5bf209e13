import { credentials, Metadata, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { bufCurl } from "./speak/buf-curl.ts";
import { loadService } from "./speak/grpc-js.ts";

interface HealthClient {
  check(
    req: object,
    metadata: Metadata,
    done: (error: { code: number } | null, answer: object) => void,
  ): void;
  watch(req: object): NodeJS.EventEmitter;
  close(): void;
}

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(stopAll);

function healthClient(): HealthClient {
  const Health = loadService<HealthClient>("grpc/health/v1/health.proto", "grpc.health.v1.Health");
  return new Health(`127.0.0.1:${server.port}`, credentials.createInsecure());
}

async function check(service: string): Promise<object> {
  const client = healthClient();
  try {
    return await new Promise((resolve) =>
      client.check({ service }, new Metadata(), (error, answer) =>
        resolve(error ? { code: error.code } : answer),
      ),
    );
  } finally {
    client.close();
  }
}

/** What a watch brings until it ends; `first` is called at its first message. */
function watch(client: HealthClient, service: string, first: () => void): Promise<unknown[]> {
  return new Promise((resolve) => {
    const seen: unknown[] = [];
    client
      .watch({ service })
      .on("data", (message: { status: string }) => {
        seen.push(message.status);
        if (seen.length === 1) first();
      })
      .on("error", (error: { code: number }) => resolve([...seen, error.code]));
  });
}

test("the server and each of its services are reported to be well, without a token", async () => {
  expect(await check("")).toEqual({ status: "SERVING" });
  expect(await check("service.v1.ProjectService")).toEqual({ status: "SERVING" });
  expect(await check("grpc.health.v1.Health")).toEqual({ status: "SERVING" });
});

test("a service that the server does not have is not found", async () => {
  expect(await check("service.v1.Nothing")).toEqual({ code: status.NOT_FOUND });
});

test("plain JSON asks the same", async () => {
  const res = await fetch(`${server.url}/api/grpc.health.v1.Health/Check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  expect([res.status, await res.json()]).toEqual([200, { status: "SERVING" }]);
});

test("buf curl asks the same", async () => {
  const run = await bufCurl([
    ...["--schema", "third_party", "--protocol", "grpc", "--http2-prior-knowledge"],
    `${server.url}/grpc.health.v1.Health/Check`,
  ]);
  expect([run.code, JSON.parse(run.stdout)]).toEqual([0, { status: "SERVING" }]);
});

test("a caller that watches learns that the server goes, and is cut off as unavailable", async () => {
  const client = healthClient();
  const both = new Map<string, () => void>();
  const begun = Promise.all(
    ["", "service.v1.Nothing"].map((name) => new Promise<void>((r) => both.set(name, r))),
  );
  const known = watch(client, "", () => both.get("")?.());
  const unknown = watch(client, "service.v1.Nothing", () => both.get("service.v1.Nothing")?.());
  await begun;
  const exit = server.stop();
  expect(await known).toEqual(["SERVING", "NOT_SERVING", status.UNAVAILABLE]);
  expect(await unknown).toEqual(["SERVICE_UNKNOWN", status.UNAVAILABLE]);
  expect(await exit).toBe(0);
  client.close();
});
