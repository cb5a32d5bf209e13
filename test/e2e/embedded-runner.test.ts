import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import packageJson from "../../package.json" with { type: "json" };
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import {
  newExchangeToken,
  startRegisteredRunner,
  startRunnerProcess,
  stopRunners,
} from "../harness/runner-process.ts";
import {
  type ReachableServer,
  startHostedServer,
  startServer,
  stopAll,
  type TestServer,
  temporaryFolder,
} from "../harness/server.ts";
import { startServerProxy } from "../harness/server-proxy.ts";
import { until } from "../harness/until.ts";

/** No server has this port. */
const NOWHERE = "http://127.0.0.1:1";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

const runnerOf = async (runnerId: string) =>
  (await succeeded(post(server, "RunnerService/GetRunner", { runnerId }))).runner;

describe("a runner", () => {
  test("registers once with the token of its environment, and works on after restarts without one", async () => {
    const { runnerId, exchangeToken } = await newExchangeToken(server);
    const first = startRunnerProcess(server, { env: { CHARTROOM_EXCHANGE_TOKEN: exchangeToken } });
    await first.untilLogged("the runner takes work", { runner: runnerId });
    const { status } = await runnerOf(runnerId);
    const { version } = JSON.parse(readFileSync("package.json", "utf8"));
    expect([status.phase, status.version]).toEqual(["RUNNER_PHASE_ACTIVE", version]);
    expect(status.systemDetails).toMatch(/Linux|Darwin/);
    expect(await first.stop()).toBe(0);

    const { stateDir } = first;
    const file = join(stateDir, "runner.json");
    expect([statSync(file).mode & 0o777, statSync(stateDir).mode & 0o777]).toEqual([0o600, 0o700]);
    const second = startRunnerProcess(server, { stateDir });
    await second.untilLogged("the runner takes work", { runner: runnerId });
    expect(second.log().map(({ msg }) => msg)).not.toContain("registered");
    expect(await second.stop()).toBe(0);

    const secrets = [exchangeToken, JSON.parse(readFileSync(file, "utf8")).token];
    for (const secret of secrets) expect(first.output() + second.output()).not.toContain(secret);
  });

  test("registers with the token of a file, and brings one class along", async () => {
    const { runnerId, exchangeToken } = await newExchangeToken(server);
    const file = join(temporaryFolder(), "token");
    writeFileSync(file, `${exchangeToken}\n`);
    const runner = startRunnerProcess(server, { args: ["--exchange-token-file", file] });
    await runner.untilLogged("the runner takes work", { runner: runnerId });
    const { environmentClasses } = await succeeded(
      post(server, "RunnerConfigurationService/ListEnvironmentClasses", {
        filter: { runnerIds: [runnerId] },
      }),
    );
    expect(environmentClasses).toMatchObject([
      { displayName: "Folder", description: "A folder on the runner's machine", enabled: true },
    ]);
    expect(await runner.stop()).toBe(0);
  });

  test("waits for a server that is away", async () => {
    const { exchangeToken } = await newExchangeToken(server);
    // It keeps the port, which somebody else could take where the server itself went.
    const proxy = await startServerProxy({ url: NOWHERE });
    const runner = startRunnerProcess(proxy, { env: { CHARTROOM_EXCHANGE_TOKEN: exchangeToken } });
    await runner.untilLogged("the server cannot be reached; trying again");
    proxy.forwardTo(server);
    await runner.untilLogged("the runner takes work");
    expect(await runner.stop()).toBe(0);
    await proxy.stop();
  });

  test("stops at once while it waits for its server", async () => {
    const runner = startRunnerProcess({ url: NOWHERE }, { env: { CHARTROOM_EXCHANGE_TOKEN: "cr_exc_x" } });
    await runner.untilLogged("the server cannot be reached; trying again");
    expect(await runner.stop()).toBe(0);
  });
});

describe("a runner that cannot work says why in a sentence", () => {
  const complaint = async (options: Parameters<typeof startRunnerProcess>[1], url = server.url) => {
    const runner = startRunnerProcess({ url }, options);
    expect(await runner.ended).toBe(1);
    const line = runner
      .output()
      .split("\n")
      .find((text) => text.startsWith("chartroom: "));
    expect(runner.output()).not.toMatch(/\n\s+at /);
    return line;
  };

  test("when it has no token yet", async () => {
    expect(await complaint({})).toMatch(
      /is not registered: make an exchange token .*chartroom runner create .*CreateRunnerToken/,
    );
  });

  test("when the token was used, or is none", async () => {
    const { exchangeToken } = await newExchangeToken(server);
    const runner = startRunnerProcess(server, { env: { CHARTROOM_EXCHANGE_TOKEN: exchangeToken } });
    await runner.untilLogged("the runner takes work");
    for (const token of [exchangeToken, "nonsense"]) {
      expect(await complaint({ env: { CHARTROOM_EXCHANGE_TOKEN: token } })).toMatch(
        /the exchange token was used or replaced, or is older than 24 hours/,
      );
    }
    await runner.stop();
  });

  test("when its folder is that of another server's runner, and shows that one's token to nobody", async () => {
    const { stateDir, stop } = await startRegisteredRunner(server);
    await stop();
    expect(await complaint({ stateDir }, NOWHERE)).toMatch(
      new RegExp(`is that of a runner of ${server.url}: use another folder`),
    );
  });

  test("when the server has another URL now, until its file says so", async () => {
    const { stateDir, stop } = await startRegisteredRunner(server);
    await stop();
    const moved = server.url.replace("127.0.0.1", "localhost");
    expect(await complaint({ stateDir }, moved)).toMatch(/write the URL into its runner\.json/);
    const file = join(stateDir, "runner.json");
    writeFileSync(file, readFileSync(file, "utf8").replace(server.url, moved));
    const runner = startRunnerProcess({ url: moved }, { stateDir });
    await runner.untilLogged("the runner takes work");
    const line = runner.output().match(/^.*the runner takes work.*$/m)?.[0] ?? "{}";
    expect(JSON.parse(line).version).toBe(packageJson.version);
    await runner.stop();
  });

  test("when its file is damaged, without quoting it", async () => {
    const stateDir = temporaryFolder();
    writeFileSync(join(stateDir, "runner.json"), '{"token": "cr_run_secret"');
    const line = await complaint({ stateDir });
    expect(line).toMatch(/runner\.json is damaged: remove it/);
    expect(line).not.toContain("secret");
  });

  test("when it is deleted while it works, and when it starts after that", async () => {
    const runner = await startRegisteredRunner(server);
    await succeeded(post(server, "RunnerService/DeleteRunner", { runnerId: runner.runnerId }));
    expect(await runner.ended).toBe(1);
    expect(runner.output()).toMatch(/chartroom: the runner's token holds no longer/);
    expect(await complaint({ stateDir: runner.stateDir })).toMatch(/token holds no longer/);
  });

  test("when there is no git", async () => {
    const { exchangeToken } = await newExchangeToken(server);
    const env = { CHARTROOM_EXCHANGE_TOKEN: exchangeToken, PATH: temporaryFolder() };
    expect(await complaint({ env })).toMatch(/git 2\.37 or newer is needed in PATH/);
  });
});

describe("the server's own runner", () => {
  test("registers itself, also at the next start, and again when it was deleted", async () => {
    const first = await startServer({ args: ["--local-runner"] });
    const { dataDir } = first;
    const taking = (each: Pick<TestServer, "log">) =>
      until(
        () => each.log().find(({ msg }) => msg === "the runner takes work"),
        (line) => line !== undefined,
      );
    const runnerId = (await taking(first))?.runner;
    const get = (each: ReachableServer) =>
      post({ url: each.url, token: first.token }, "RunnerService/GetRunner", { runnerId });
    expect((await succeeded(get(first))).runner).toMatchObject({
      name: "Local runner",
      kind: "RUNNER_KIND_REMOTE",
      status: { phase: "RUNNER_PHASE_ACTIVE" },
    });
    expect(await first.stop()).toBe(0);
    expect(existsSync(join(dataDir, "runner", "runner.json"))).toBe(true);

    const second = await startHostedServer({ dataDir, args: ["--local-runner"] });
    expect((await taking(second))?.runner).toBe(runnerId);
    await post({ url: second.url, token: first.token }, "RunnerService/DeleteRunner", { runnerId });
    await until(
      () => second.log().map(({ msg }) => msg),
      (messages) => messages.includes("the local runner has ended"),
    );
    expect((await get(second)).status).toBe(404);
    await second.stop();

    const third = await startHostedServer({ dataDir, args: ["--local-runner"] });
    expect((await taking(third))?.runner).not.toBe(runnerId);
    expect(third.log().filter(({ level }) => level === "error")).toEqual([]);
    await third.stop();
  });
});
