import { statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post, repository } from "../harness/call.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { storedTexts } from "../harness/stored-texts.ts";

/** Is in bodies, whole and broken, and must stay out of the log. */
const MARK = "Rumpelstiltskin";

let server: TestServer;
let folder: string;
/** Everything that opens something and was shown once. */
let secrets: string[];
beforeAll(async () => {
  folder = join(temporaryFolder(), "data");
  server = await startServer({ dataDir: folder, args: ["--log-level", "debug"] });
  const made = await post(server, "UserService/CreatePersonalAccessToken", { description: MARK });
  const runner = await post(server, "RunnerService/CreateRunner", { name: MARK });
  const { runnerId } = runner.body.runner;
  const renewed = await post(server, "RunnerService/CreateRunnerToken", { runnerId });
  secrets = [server.token, made.body.token, runner.body.exchangeToken, renewed.body.exchangeToken];
});
afterAll(stopAll);

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

/** The files of the data folder and the tables of its database with a text in them, as they are stored now. */
const placesOf = async (text: string) =>
  [...(await storedTexts(folder))].filter(([, content]) => content.includes(text)).map(([place]) => place);

describe("the data folder", () => {
  test("and the key file are for their owner alone", () => {
    expect([mode(folder), mode(join(folder, "key.json"))]).toEqual(["700", "600"]);
  });

  test("and its database hold no token, while the server runs", async () => {
    expect(secrets.every((secret) => /^cr_(pat|exc)_\w{36}$/.test(secret))).toBe(true);
    // The search itself finds what is there.
    expect(await placesOf(MARK)).not.toEqual([]);
    for (const secret of secrets) {
      const random = secret.slice("cr_pat_".length, -6);
      expect([await placesOf(secret), await placesOf(random)]).toEqual([[], []]);
    }
  });
});

test("the first start's token is printed in the line for people and in the call to paste", () => {
  const lines = server.output().split("\n");
  expect(lines.filter((line) => line.includes(server.token)).map((line) => line.trim())).toEqual([
    server.token,
    `-H 'Authorization: Bearer ${server.token}' \\`,
  ]);
});

describe("the log", () => {
  test("has no token and no part of a body, whatever became of the request", async () => {
    const initializer = repository(`https://git.example.org/${MARK}`);
    const calls: [string, unknown, (string | undefined)?, Record<string, string>?][] = [
      ["ProjectService/CreateProject", { name: MARK, initializer, technicalDescription: MARK }],
      ["ProjectService/CreateProject", { name: `${MARK}\n`, initializer }],
      ["ProjectService/CreateProject", `{"name":"${MARK}"`],
      ["ProjectService/CreateProject", { [MARK]: 1 }],
      ["ProjectService/CreateProject", { prebuildConfiguration: { executor: { principal: MARK } } }],
      ["ProjectService/ListProjects", { filter: { search: MARK } }],
      ["ProjectService/ListProjects", { pagination: { token: MARK } }],
      ["ProjectService/GetProject", { projectId: MARK }],
      ["AgentService/StartAgent", { name: MARK }],
      ["ProjectService/ListProjects", {}, `cr_pat_${MARK}`],
      ["ProjectService/ListProjects", {}, server.token.replace(/.$/, "_")],
      ["ProjectService/ListProjects", {}, server.token, { "x-note": MARK, "user-agent": MARK }],
      [`ProjectService/ListProjects?note=${MARK}`, {}],
      [`${server.token}/ListProjects`, {}],
    ];
    const statuses: number[] = [];
    for (const [operation, body, token = server.token, headers = {}] of calls) {
      statuses.push((await post(server, operation, body, token, headers)).status);
    }
    expect(statuses).toEqual([200, 400, 400, 400, 400, 200, 400, 400, 400, 401, 401, 200, 200, 404]);
    await server.stop();
    const log = server.logText();
    expect(log.split("\n").filter((line) => line.includes('"msg":"call"')).length).toBeGreaterThanOrEqual(
      calls.length,
    );
    expect(log).not.toContain(MARK);
    for (const secret of secrets) expect(log).not.toContain(secret.slice("cr_pat_".length, -6));
  });

  test("and what is stored have none of it either when the server is gone", async () => {
    for (const secret of secrets) expect(await placesOf(secret.slice("cr_pat_".length, -6))).toEqual([]);
  });
});
