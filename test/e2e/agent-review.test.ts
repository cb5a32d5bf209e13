import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { addDefaultAgent } from "../harness/added-agent.ts";
import {
  addScriptedAgent,
  type Conversation,
  closeConversations,
  receivedInputs,
  startConversation,
} from "../harness/agent-conversation.ts";
import { type Answer, post, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { ROOT } from "../harness/program.ts";
import { startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import {
  type ReachableServer,
  runCommand,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { until } from "../harness/until.ts";

const BASE = Array.from({ length: 8 }, (_, index) => `line ${index + 1} of the file`);
/** The file as a command of the agents writes it, with other lines in place of some. */
const written = (lines: readonly string[]) => `write app.txt ${lines.join(" / ")}`;

let origin: BareRepository;
let received: string;
let scripted: ReachableServer;
let acp: ReachableServer;
beforeAll(async () => {
  origin = bareRepository(temporaryFolder(), { "app.txt": `${BASE.join("\n")}\n` }, "hello.git");
  received = join(temporaryFolder(), "received");
  scripted = await startHostedServer({ args: LONG_LEASES });
  acp = await startHostedServer({ args: LONG_LEASES });
  await addScriptedAgent(scripted, received);
  const program = [process.execPath, join(ROOT, "examples/agents/acp-agent.js")];
  await addDefaultAgent(acp, "acp", "acp", program);
  await startRegisteredRunner(scripted);
  await startRegisteredRunner(acp);
});
afterAll(async () => {
  closeConversations();
  await stopRunners();
  await stopAll();
});

type Body = Answer["body"];

/** A run in an environment of the repository, and what its diff and its reviews show. */
async function startReviewed(server: ReachableServer) {
  const spec = { content: { initializer: repository(origin.url) } };
  const { environment } = await succeeded(
    post(server, "EnvironmentService/CreateEnvironment", { name: "Reviewed", spec }),
  );
  const environmentId: string = environment.id;
  const run = await startConversation(server, { codeContext: { environmentId } });
  const diff = async (): Promise<Body> =>
    (await post(server, "EnvironmentService/GetEnvironmentDiff", { environmentId })).body;
  const untilShown = (isShown: (patches: Record<string, string>) => boolean) =>
    until(diff, ({ files }) =>
      isShown(Object.fromEntries((files ?? []).map((file: Body) => [file.path, file.patch]))),
    );
  /** Comments on a line of the present diff, or of the diff with a digest. */
  const review = async (id: string, comments: readonly object[], more: object = {}) => {
    const { digest } = await diff();
    const placed = comments.map((each) => ({ digest, ...each }));
    await run.send({ userInput: { id, inputs: [{ review: { comments: placed, ...more } }] } });
  };
  const states = async () => {
    const agentExecutionId = run.id;
    const { reviews } = await succeeded(
      post(server, "AgentReviewService/ListAgentReviews", { agentExecutionId }),
    );
    const comments: Body[] = reviews.flatMap((input: Body) => input.userInput.inputs[0].review.comments);
    return comments.map(({ present: { state, path, firstLine } }) => [
      state.replace("STATE_", ""),
      path,
      firstLine,
    ]);
  };
  return { run, diff, untilShown, review, states };
}

/** A comment on one line of the file. */
const on = (line: number, text: string, more: object = {}) => ({
  path: "hello/app.txt",
  firstLine: line,
  lastLine: line,
  text,
  ...more,
});
const inputOf = async (run: Conversation, id: string) => (await run.inputs()).find((each) => each.id === id);

test("the agent reads a review, and its comments follow their lines until those change", async () => {
  const { run, untilShown, review, states } = await startReviewed(scripted);
  const first = [BASE[0], "second", ...BASE.slice(2), "the end of it"] as string[];
  await run.say("first", written(first));
  await untilShown((patches) => patches["hello/app.txt"]?.includes("+the end of it") ?? false);

  // The agent changes the line that it is asked to.
  const second = first.map((line) => (line === "second" ? "2nd" : line));
  await review("review 1", [on(2, written(second)), on(2, "Why?", { side: "SIDE_OLD" })], {
    summary: "Nearly there.",
  });
  await untilShown((patches) => patches["hello/app.txt"]?.includes("+2nd") ?? false);
  await run.untilIdle();
  expect(receivedInputs(run.id, received).at(-1)?.words).toBe(
    `Review of your changes, 2 comments:

Nearly there.

1. app.txt, line 2:
> second
${written(second)}

2. app.txt, line 2, as they were before the changes:
> line 2 of the file
Why?`,
  );
  const old = ["CURRENT", "hello/app.txt", 2];
  const OUTDATED = ["OUTDATED", "", 0];
  expect(await states()).toEqual([OUTDATED, old]);
  const stored = await inputOf(run, "review 1");
  expect(stored).toMatchObject({
    receipt: "AGENT_INPUT_RECEIPT_SEEN",
    userInput: { inputs: [{ review: { comments: [{ quote: { lines: ["second"] } }, {}] } }] },
  });
  expect(stored?.userInput.inputs).toHaveLength(1);

  // Lines are inserted above a comment.
  await review("review 2", [on(9, written(["zero", ...second]))]);
  await untilShown((patches) => patches["hello/app.txt"]?.includes("+zero") ?? false);
  expect(await states()).toEqual([OUTDATED, old, ["MOVED", "hello/app.txt", 10]]);

  // The file gets another name. A comment that was made before comes with the place of its lines.
  const { digest } = await succeeded(
    post(scripted, "AgentReviewService/ListAgentReviews", { agentExecutionId: run.id }),
  );
  await review("review 3", [on(1, "move app.txt moved.txt")]);
  await untilShown((patches) => "hello/moved.txt" in patches);
  expect(await states()).toEqual([
    OUTDATED,
    ["MOVED", "hello/moved.txt", 2],
    ["MOVED", "hello/moved.txt", 10],
    ["MOVED", "hello/moved.txt", 1],
  ]);
  const quote = { lines: ["2nd"], before: ["line 1 of the file"], after: ["line 3 of the file"] };
  await review("review 4", [
    on(3, "echo carried", { digest, quote }),
    on(3, "echo lost", { digest, quote: { lines: ["third"] } }),
  ]);
  await run.untilOutput("lost");
  expect(receivedInputs(run.id, received).at(-1)?.words).toContain(
    `1. moved.txt, line 3:
> 2nd
echo carried

2. app.txt, line 3 (outdated: these lines have changed since the comment was made, or are gone):
> third
echo lost`,
  );

  // The file is deleted: only what was there before the changes is still to be seen.
  await review("review 5", [on(1, "remove moved.txt", { path: "hello/moved.txt" })]);
  await untilShown((patches) => "hello/app.txt" in patches && !("hello/moved.txt" in patches));
  expect(await states()).toEqual([OUTDATED, old, OUTDATED, OUTDATED, OUTDATED, OUTDATED, OUTDATED]);
});

test("an agent of the Agent Client Protocol gets the words, and links to the files", async () => {
  const { run, untilShown, review, states } = await startReviewed(acp);
  await run.say("first", written([...BASE, "the end"]));
  await untilShown((patches) => patches["hello/app.txt"]?.includes("+the end") ?? false);
  await review("review", [on(9, written([...BASE, "an end"])), on(8, "count")], { summary: "links" });
  await untilShown((patches) => patches["hello/app.txt"]?.includes("+an end") ?? false);
  await run.untilIdle();
  const output = run.blocks.map(({ block }) => (block.case === "text" ? block.value.content : "")).join("");
  expect(output).toMatch(/^hello\/app\.txt at file:\/\/\/\S+\/hello\/app\.txt: comments on lines 9, 8\n2\n$/);
  expect(await states()).toEqual([
    ["OUTDATED", "", 0],
    ["CURRENT", "hello/app.txt", 8],
  ]);
});

test("the command sends reviews, and lists them and drafts", async () => {
  const { run, untilShown, diff } = await startReviewed(scripted);
  const settings = { CHARTROOM_SERVER: scripted.url, CHARTROOM_TOKEN: scripted.token };
  const command = async (...args: string[]) => {
    const { code, stdout, stderr } = await runHostedCommand(["run", "review", run.id, ...args], settings);
    return { code, stdout, stderr };
  };
  expect(await command()).toEqual({ code: 0, stdout: "no reviews\n", stderr: "" });
  await run.say("first", written([...BASE, "the end", "of it"]));
  await untilShown((patches) => patches["hello/app.txt"]?.includes("+of it") ?? false);

  const { code, stdout } = await runCommand(
    [
      ...["run", "review", run.id, "--summary", "Two things."],
      ...["--comment", "hello/app.txt:9-10", "echo one", "--comment", "hello/app.txt:8", "echo two"],
    ],
    settings,
  );
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^[0-9a-f-]{36}\n$/)]);
  await run.untilOutput("two");
  await run.untilIdle();
  expect((await command()).stdout).toBe(
    `${stdout.trim()}  seen\nTwo things.\nhello/app.txt:9-10  current\n    echo one\nhello/app.txt:8  current\n    echo two\n`,
  );
  const { digest } = await diff();
  const file = join(temporaryFolder(), "review.json");
  const old = { path: "hello/app.txt", side: "SIDE_OLD", firstLine: 8, lastLine: 8, text: "echo three" };
  writeFileSync(file, JSON.stringify({ comments: [{ ...on(9, "echo four"), digest }, old] }));
  const sent = await command("--from", file, "--json");
  expect(Object.keys(JSON.parse(sent.stdout))).toEqual(["inputId"]);
  await run.untilOutput("three");
  const listed = JSON.parse((await command("--json")).stdout);
  expect(listed[1].userInput.inputs[0].review.comments).toMatchObject([
    { text: "echo four", present: { state: "STATE_CURRENT" } },
    { text: "echo three", quote: { lines: ["line 8 of the file"] }, present: { firstLine: 8 } },
  ]);

  expect((await command("--drafts")).stdout).toBe("no drafts\n");
  const draft = { agentExecutionId: run.id, summary: "Not yet", comments: [{ ...on(9, "Hm\nhm"), digest }] };
  const made = await succeeded(post(scripted, "AgentReviewService/CreateAgentReviewDraft", draft));
  expect((await command("--drafts")).stdout).toBe(
    `${made.draft.id}  revision 1\nNot yet\nhello/app.txt:9  current\n    Hm\n    hm\n`,
  );
  expect(JSON.parse((await command("--drafts", "--json")).stdout)).toMatchObject([{ summary: "Not yet" }]);

  const refused = async (...args: string[]) => {
    const result = await command(...args);
    expect(result.code).toBe(1);
    return result.stderr;
  };
  expect(await refused("--comment", "hello/app.txt:1", "x")).toContain("does not show line 1");
  expect(await refused("--comment", "hello/app.txt", "x")).toContain("--comment takes a place");
  expect(await refused("--comment", "hello/app.txt:9")).toContain("--comment takes a place");
  expect(await refused("--drafts", "--summary", "x")).toContain("--drafts lists drafts");
  expect(await refused("--from", join(temporaryFolder(), "none"))).toContain("there is no such file");
});
