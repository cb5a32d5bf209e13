import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readLog } from "../harness/action-log.ts";
import { type Answer, post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { startRegisteredRunner, startRunnerProcess, stopRunners } from "../harness/runner-process.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";
import { WORK_USER } from "./sandboxes.ts";

const ISOLATED = { CHARTROOM_ISOLATION: "auto" };
const AUDIT = "KERNEL_CONTROLS_ACTION_AUDIT";
const user = String(WORK_USER ?? process.getuid?.());

let server: TestServer;
let repository: BareRepository;
const stateHome = temporaryFolder();
beforeAll(async () => {
  repository = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
  const env = { ...ISOLATED, XDG_STATE_HOME: stateHome };
  server = await startServer({ args: ["--local-runner", "--allow-file-remotes"], env });
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

async function ran(on: Pick<TestServer, "url" | "token">, ...commands: readonly string[]) {
  const run = await startExecution(on, { repository: () => repository.url, steps: commands.map(task) });
  await until(run.execution, ({ status }) => /COMPLETED|STOPPED/.test(status.phase));
  const [action] = await run.actions();
  const logs = await Promise.all(commands.map((_, stepIndex) => readLog(on, action.id, { stepIndex })));
  return { action: action as Answer["body"], logs };
}

describe("a server's own runner", () => {
  test("runs steps in a sandbox, where nothing of the server is", async () => {
    const keyFile = join(server.dataDir, "key.json");
    expect(readFileSync(keyFile, "utf8")).not.toBe("");
    const { action, logs } = await ran(
      server,
      `id -u; cat a.txt; echo two > a.txt; git add -A; git -c user.name=a -c user.email=a@b commit -qm two; git status --short`,
      `cat a.txt; ls ${server.dataDir}; cat ${keyFile} /proc/*/environ /proc/*/root${keyFile} | wc -c; ls ~ /tmp`,
    );
    expect(action.status.phase).toMatch(/DONE|SUCCEEDED|COMPLETED/);
    expect(logs[0]).toBe(`${user}\none\n`);
    expect(logs[1]).toContain("two\n");
    expect(logs[1]).toContain(`${keyFile}: No such file`);
  });

  test("commits and pushes what steps have changed, and they go on from there", async () => {
    const proposal = { title: "Two", description: "", branch: "topic", draft: false };
    const run = await startExecution(server, {
      repository: () => repository.url,
      steps: [
        task("echo two > b.txt"),
        { pullRequest: proposal },
        task(
          "git log --format=%s -1; echo three > c.txt; git add -A; git commit -qm three; git log --format=%s -1",
        ),
      ],
    });
    await until(run.execution, ({ status }) => /COMPLETED|STOPPED/.test(status.phase));
    const [action] = await run.actions();
    expect(await readLog(server, action.id, { stepIndex: 2 })).toBe("Two\nthree\n");
    expect(repository.list("topic")).toEqual(["a.txt", "b.txt"]);
  });

  test("lets steps reach the service and nothing else, and says once what was refused", async () => {
    const refused = createServer((_, res) => res.end("got-through")).listen(0, "127.0.0.1");
    await once(refused, "listening");
    const { port } = refused.address() as AddressInfo;
    const { action, logs } = await ran(
      server,
      'curl -sS -H "Authorization: Bearer $CHARTROOM_ENVIRONMENT_TOKEN" -H "Content-Type: application/json" -d "{}" $CHARTROOM_URL/service.v1.IdentityService/GetAuthenticatedIdentity',
      `curl -sS http://127.0.0.1:${port}/; curl -sS http://a.example/; curl -sS http://a.example/ >/dev/null`,
    );
    refused.close();
    expect(action.status.phase).toMatch(/DONE|SUCCEEDED|COMPLETED/);
    expect(logs[0]).toContain("PRINCIPAL_ENVIRONMENT");
    expect(logs[1]).not.toContain("got-through");
    const line =
      "chartroom: a.example:80 is not reached: the organization's policy `egress` does not allow it\n";
    expect(logs[1]?.split(line)).toHaveLength(2);
    const environmentId = action.spec.environmentId ?? action.status.environmentId;
    const { connections } = await succeeded(
      post(server, "EnvironmentService/ListEnvironmentConnections", { environmentId }),
    );
    const listed = connections.map(
      ({ host, port: at, refusal }: Answer["body"]) => `${host}:${at} ${refusal}`,
    );
    // What is on the loopback is in the work's own network, and asks no proxy.
    expect(listed).toEqual(["a.example:80 REFUSAL_NOT_ALLOWED", "a.example:80 REFUSAL_NOT_ALLOWED"]);
  });

  test("lets steps reach what the organization's policy allows", async () => {
    const organizationId = (await succeeded(post(server, "IdentityService/GetAuthenticatedIdentity", {})))
      .organizationId;
    const set = (policies: object) =>
      succeeded(
        post(server, "OrganizationService/UpdateOrganizationPolicies", { organizationId, ...policies }),
      );
    await set({ egress: {} });
    const reach = 'curl -sS -o /dev/null -w "%{http_code}" $CHARTROOM_URL/readyz || echo " none"';
    const { logs } = await ran(server, reach);
    await set({ updateMask: "egress" });
    expect(logs[0]).toContain(" none");
    expect(logs[0]).toContain(`chartroom: ${new URL(server.url).host} is not reached`);
    expect((await ran(server, reach)).logs[0]).toBe("200");
  });

  test("keeps what it clones for the next clone, where no work finds it", async () => {
    const cached = () =>
      readdirSync(stateHome, { recursive: true })
        .map(String)
        .filter((name) => /repository-cache\/.*\.pack$/.test(name));
    const look = `find ${stateHome} -maxdepth 5`;
    const { logs } = await ran(server, look);
    const [pack = ""] = cached();
    expect(pack).toMatch(/\.pack$/);
    expect(logs[0]).toContain("/workspaces/");
    expect(logs[0]).not.toContain("repository-cache");
    await ran(server, "true");
    expect(cached()).toContain(pack);
  });

  test("keeps the policies about programs and files, and is given no work under others", async () => {
    const { organizationId } = await succeeded(post(server, "IdentityService/GetAuthenticatedIdentity"));
    const set = (policies: object) =>
      succeeded(
        post(server, "OrganizationService/UpdateOrganizationPolicies", { organizationId, ...policies }),
      );
    await set({
      vetoExecPolicy: { enabled: true, executables: ["find"] },
      vetoFilePolicy: { enabled: true, paths: { entries: [{ path: "/usr/share/doc" }] } },
    });
    const { action, logs } = await ran(server, "ls > /dev/null; find .; echo $?; ls /usr/share/doc; true");
    expect(logs[0]).toMatch(/find: .*denied[\s\S]*12[67]\n[\s\S]*doc.*denied/i);
    expect(action.status.failures).toEqual([]);
    await set({ vetoExecPolicy: { enabled: true, executables: ["find"], action: AUDIT } });
    const steps = [task("true")];
    const run = await startExecution(server, { repository: () => repository.url, steps });
    const [held] = await until(run.actions, ([each]) => each?.status.warnings.length > 0);
    expect(held.status.warnings[0]).toMatchObject({
      reason: "waiting_for_runner",
      meta: { policies: "vetoExecPolicy,vetoFilePolicy" },
    });
    await set({ vetoExecPolicy: { enabled: false }, vetoFilePolicy: { enabled: false } });
    await until(run.execution, ({ status }) => /COMPLETED/.test(status.phase));
    const { logs: free } = await ran(server, "find . -maxdepth 0");
    expect(free[0]).toBe(".\n");
  });

  test("says at its start what keeps work in", () => {
    const messages = server.log().map(({ msg }) => msg);
    expect(messages).toContain("work is isolated by bubblewrap");
  });

  test("is shown with its class", async () => {
    const { runners } = await succeeded(post(server, "RunnerService/ListRunners", {}));
    const shown = runners.find(({ status }: Answer["body"]) => status.version !== "");
    expect(shown.status.isolation).toBe("RUNNER_ISOLATION_BUBBLEWRAP");
    const { runnerId } = shown;
    const { runner } = await succeeded(post(server, "RunnerService/GetRunner", { runnerId }));
    expect(runner.status.isolation).toBe("RUNNER_ISOLATION_BUBBLEWRAP");
  });
});

describe("a runner of its own", () => {
  const classOf = async (runnerId: string) =>
    (await succeeded(post(server, "RunnerService/GetRunner", { runnerId }))).runner.status.isolation;

  test("tells its class when it registers, and another one when it is started with that", async () => {
    const runner = await startRegisteredRunner(server, { env: { CHARTROOM_ISOLATION: "bubblewrap" } });
    expect(await classOf(runner.runnerId)).toBe("RUNNER_ISOLATION_BUBBLEWRAP");
    await runner.stop();
    const again = startRunnerProcess(server, { stateDir: runner.stateDir });
    await again.untilLogged("the runner takes work");
    expect(await classOf(runner.runnerId)).toBe("RUNNER_ISOLATION_NONE");
    await again.stop();
  });
});
