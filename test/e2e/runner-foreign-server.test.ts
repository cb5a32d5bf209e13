import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, test } from "@jest/globals";
import { startHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { stopAll } from "../harness/server.ts";

afterAll(async () => {
  await stopRunners();
  await stopAll();
});

/** Starts a runner at a service that answers every call with a page. @returns its URL, and a line that the runner logs */
async function logAt(status: number, line: string) {
  const other = createServer((request, response) => {
    const answer = () =>
      response.writeHead(status, { "content-type": "text/html" }).end("<title>Hello</title>");
    request.resume().on("end", answer);
  });
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const runner = await startHostedRunner({ url }, { env: { CHARTROOM_EXCHANGE_TOKEN: "cr_exc_none" } });
  const { problem } = await runner.untilLogged(line);
  await runner.stop();
  other.closeAllConnections();
  other.close();
  return { url, problem };
}

test.each([
  ["a page for each call", 200],
  ["that there is no such page", 404],
])("a runner at a service that is not Chartroom and answers %s logs what to do", async (_, status) => {
  const { url, problem } = await logAt(status, "another service answers; trying again");
  expect(problem).toBe(
    `${url} does not answer like a Chartroom server: name the server, without a path of its console or its API, by --server`,
  );
});

test.each([
  [429, "it limits how often it is called; try again later, or raise its limit"],
  [502, "it gets no answer from the server; check that the server runs, and where the proxy sends calls"],
])("a runner at a proxy that answers %i itself logs what to check", async (status, advice) => {
  const { problem } = await logAt(status, "the server cannot be reached; trying again");
  expect(problem).toBe(`a proxy in front of the server answered HTTP ${status}: ${advice}`);
});
