import { once } from "node:events";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { answerOf, connectHttp2 } from "./http2-client.ts";

const CONNECTIONS = 4;
/** Those of one connection: with more, what waits on it would be too much for Node, which refuses streams then. */
const REQUESTS = 60;
const DOCUMENT = "/openapi.json";
/** A third of what the answers have together. */
const MAX_MIB = 96;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(stopAll);

function residentMib(): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
}

test("clients without a token that read nothing of a large document hold it once", async () => {
  const reader = await connectHttp2(server.port);
  const whole = await answerOf(reader.request({ ":path": DOCUMENT }));
  expect(CONNECTIONS * REQUESTS * whole.body.length).toBeGreaterThan(3 * MAX_MIB * 2 ** 20);
  const connecting = Array.from({ length: CONNECTIONS }, () =>
    connectHttp2(server.port, { settings: { initialWindowSize: 0 } }),
  );
  const sessions = await Promise.all(connecting);
  const before = residentMib();
  const answers = sessions.flatMap((session) =>
    Array.from({ length: REQUESTS }, () => session.request({ ":path": DOCUMENT }).on("error", () => {})),
  );
  // Each has its bytes when its headers are sent.
  const heads = await Promise.all(answers.map((answer) => once(answer, "response")));
  const contentLength = String(Buffer.byteLength(whole.body));
  expect(heads.map(([head]) => head["content-length"])).toEqual(answers.map(() => contentLength));
  expect(residentMib() - before).toBeLessThan(MAX_MIB);
  for (const session of sessions) session.destroy();
  expect((await answerOf(reader.request({ ":path": DOCUMENT }))).body).toBe(whole.body);
  reader.close();
});
