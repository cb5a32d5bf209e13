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

test.each([
  ["a page for each call", 200],
  ["that there is no such page", 404],
])("a runner at a service that is not Chartroom and answers %s logs what to do", async (_, status) => {
  const other = createServer((request, response) => {
    const answer = () =>
      response.writeHead(status, { "content-type": "text/html" }).end("<title>Hello</title>");
    request.resume().on("end", answer);
  });
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const runner = await startHostedRunner({ url }, { env: { CHARTROOM_EXCHANGE_TOKEN: "cr_exc_none" } });
  const { problem } = await runner.untilLogged("another service answers; trying again");
  expect(problem).toBe(
    `${url} does not answer like a Chartroom server: name the server, without a path of its console or its API, by --server`,
  );
  await runner.stop();
  other.closeAllConnections();
  other.close();
});
