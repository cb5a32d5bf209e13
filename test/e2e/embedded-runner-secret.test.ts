import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readLog } from "../harness/action-log.ts";
import { addDefaultAgent } from "../harness/added-agent.ts";
import { closeConversations, startConversation } from "../harness/agent-conversation.ts";
import { type Answer, post, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { type HostedRunner, startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type ReachableServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";
import { filesIn } from "../harness/stored-texts.ts";
import { until } from "../harness/until.ts";

const VARIABLE = "Rumpelstiltskin-7b1e";
const FILE = "first line of the key\nsecond line of the key\n";

let server: ReachableServer;
let runner: HostedRunner;
let source: BareRepository;
let projectId: string;
beforeAll(async () => {
  server = await startHostedServer();
  source = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
  const { organizationId } = await call("IdentityService/GetAuthenticatedIdentity", {});
  const initializer = repository(source.url);
  projectId = (await call("ProjectService/CreateProject", { name: "ship", initializer })).project.id;
  await call("SecretService/CreateSecret", {
    name: "TOKEN",
    value: VARIABLE,
    environmentVariable: true,
    scope: { organizationId },
  });
  await call("SecretService/CreateSecret", {
    name: "KEY",
    value: FILE,
    filePath: "/etc/ship/key.pem",
    scope: { projectId },
  });
  runner = await startRegisteredHostedRunner(server);
});
afterAll(async () => {
  closeConversations();
  await stopRunners();
  await stopAll();
});

const call = (operation: string, body: object) => succeeded(post(server, operation, body));

/** Runs a command as the one step of an action over the project; returns the action once it is over. */
async function ranOverProject(command: string): Promise<Answer["body"]> {
  const context = { projects: { projectIds: [projectId] } };
  const run = await startExecution(server, { context, steps: [task(command)] });
  await until(run.execution, ({ status }) => /COMPLETED/.test(status.phase));
  return (await run.actions())[0];
}

/** Says what is in the variable and the file without printing either, and where the file is. */
const TELLING = `
  printf %s "$TOKEN" | wc -c
  echo "$TOKEN" | rev
  rev "$CHARTROOM_SECRETS/etc/ship/key.pem"
  stat -c %a "$CHARTROOM_SECRETS/etc/ship/key.pem"
  case "$CHARTROOM_SECRETS/" in "$PWD"/*) echo inside;; *) echo outside;; esac
  git status --short`;
const PRINTED = [
  "20",
  "e1b7-nikstlitslepmuR",
  "yek eht fo enil tsrif",
  "yek eht fo enil dnoces",
  "600",
  "outside",
];

test("a step has its secrets as a variable and as a file, which go with its environment", async () => {
  const action = await ranOverProject(TELLING);
  expect(
    (await readLog(server, action.id))
      .trim()
      .split("\n")
      .map((line) => line.trim()),
  ).toEqual(PRINTED);
  expect(existsSync(join(runner.stateDir, "workspaces", action.status.environmentId))).toBe(false);
});

test("what a step prints of them is masked, whole or line by line, also in what fails", async () => {
  const action = await ranOverProject('env | grep TOKEN; cat "$CHARTROOM_SECRETS/etc/ship/key.pem"; exit 3');
  const log = await readLog(server, action.id);
  expect(log).toContain("TOKEN=***\n");
  for (const line of [VARIABLE, ...FILE.trim().split("\n")]) {
    expect(log).not.toContain(line);
    expect(JSON.stringify(action)).not.toContain(line);
  }
});

test("an agent has them while it runs, and they are gone from the machine when it has stopped", async () => {
  const program = join(temporaryFolder(), "agent.sh");
  const text = `cat > /dev/null\n${TELLING}\n`;
  writeFileSync(program, text, { mode: 0o700 });
  await addDefaultAgent(server, "teller", "text", ["sh", program]);
  const conversation = await startConversation(server, { codeContext: { projectId } });
  await conversation.say("one", "tell");
  await until(conversation.output, (said) => said.join("").includes("outside"));
  const said = conversation.output().join("\n");
  for (const line of PRINTED) expect(said).toContain(line);
  await conversation.stop();
  await conversation.untilPhase("STOPPED");
  await runner.untilLogged("work ended", { work: "agent" });
  const contents = filesIn(runner.stateDir).map((file) => readFileSync(file, "latin1"));
  expect(contents.length).toBeGreaterThan(1);
  for (const each of ["first line of the key", VARIABLE])
    expect(contents.filter((content) => content.includes(each))).toEqual([]);
});

test("the runner's log has no value, nor a folder with one", () => {
  for (const each of [VARIABLE, "first line of the key"]) expect(runner.output()).not.toContain(each);
  const workspaces = join(runner.stateDir, "workspaces");
  expect(
    readdirSync(workspaces, { recursive: true }).filter((name) => /key\.pem$/.test(String(name))),
  ).toEqual([]);
});
