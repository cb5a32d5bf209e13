import { execFileSync } from "node:child_process";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { EnvironmentQuestion } from "#gen/runner/v1/environment_question_pb.js";
import { EnvironmentQuestionSchema } from "#gen/runner/v1/environment_question_pb.js";
import { DiffBase, EnvironmentFileDiff_PatchOmission } from "#gen/service/v1/environment_changes_pb.js";
import { Secrets } from "../../src/domain/secrets.ts";
import type { ChangesReport } from "../../src/runner/changes/environment-report.ts";
import { EnvironmentWatch } from "../../src/runner/changes/environment-watch.ts";
import type { GitTools } from "../../src/runner/git/git-tools.ts";
import { type AnswerTools, environmentAnswers } from "../../src/runner/questions/environment-answers.ts";
import { realGit } from "../harness/runner-git.ts";
import { temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

const ID = "01900000-0000-7000-8000-000000000007";
const SECRET = "hunter2hunter2";

let git: GitTools;
let workspaces: string;
let workspace: { folder: string; tree: string; home: string };
let commit: string;
let reports: ChangesReport[];
beforeAll(async () => {
  git = await realGit();
});
beforeEach(() => {
  workspaces = join(temporaryFolder(), "workspaces");
  const folder = join(workspaces, ID);
  workspace = { folder, tree: join(folder, "tree"), home: join(folder, "home") };
  const ship = join(workspace.tree, "ship");
  mkdirSync(ship, { recursive: true });
  const run = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.org", ...args], {
      cwd: ship,
      encoding: "utf8",
    }).trim();
  run("init", "--quiet", "--initial-branch=main");
  writeFileSync(join(ship, "a.txt"), "one\n");
  run("add", "--all");
  run("commit", "--quiet", "--message=a commit");
  commit = run("rev-parse", "HEAD");
  const checkouts = [{ location: "ship", remoteUri: "https://git.example.org/ship.git", commit }];
  writeFileSync(join(folder, "complete.json"), JSON.stringify(checkouts));
  writeFileSync(join(ship, `b-${SECRET}`), `x ${SECRET} y`);
  reports = [];
});

/** The part of a runner's program that answers, as it is started again. */
function program() {
  const client = {
    reportEnvironmentChanges: async (report: ChangesReport) => void reports.push(report),
  } as unknown as ConstructorParameters<typeof EnvironmentWatch>[0];
  const watch = new EnvironmentWatch(client, git, { warn: () => undefined });
  const tools = { workspaces, prebuilds: workspaces, watch } as unknown as AnswerTools;
  const answer = environmentAnswers(tools);
  const ask = async (question: EnvironmentQuestion["question"], environmentId = ID) => {
    const asked = create(EnvironmentQuestionSchema, { id: "q", environmentId, question });
    return (await answer(asked, new AbortController().signal, () => undefined)).value;
  };
  const work = (value = SECRET, secretIds: readonly string[] = []) => {
    const secrets = new Secrets();
    secrets.add(value);
    const watched = { environmentId: ID, workspace, checkouts: [], secrets, secretIds };
    watch.enter(watched);
    return () => watch.leave(watched);
  };
  return { ask, work, watch };
}
const of = <T extends EnvironmentQuestion["question"]>(question: object) => question as T;
const list = of({ case: "listFiles", value: { path: "ship", offset: 0, limit: 10 } });
const read = of({ case: "readFile", value: { path: `ship/b-${SECRET}`, offset: 0n, maxBytes: 100 } });
const diff = () => of({ case: "diffToCommit", value: { commit, offset: 0, limit: 10 } });
const refresh = of({ case: "refreshChanges", value: {} });

describe("an answer", () => {
  test.each(["while work goes on", "after it has ended"])(
    "is masked by the secrets of work %s",
    async (when) => {
      const { ask, work } = program();
      const leave = work();
      if (when !== "while work goes on") leave();
      expect(await ask(list)).toMatchObject({
        files: [
          { name: "a.txt", nameAltered: false },
          { name: "b-***", nameAltered: true },
        ],
      });
      expect(await ask(read)).toMatchObject({ data: Buffer.from("x *** y"), file: { name: "b-***" } });
      expect(await ask(diff())).toMatchObject({
        files: [{ path: "ship/b-***", patch: expect.stringContaining("+x *** y\n") }],
      });
      await ask(refresh);
      const text = JSON.stringify(reports, (_, value) => (typeof value === "bigint" ? String(value) : value));
      expect([text.includes("b-***"), text.includes(SECRET)]).toEqual([true, false]);
    },
  );

  test("and a report of a turn are masked by the secrets of other work there, too", async () => {
    const { work, watch } = program();
    work()();
    const checkouts = [{ location: "ship", remoteUri: "https://git.example.org/ship.git", commit }];
    const watched = { environmentId: ID, workspace, checkouts, secrets: new Secrets() };
    watch.enter(watched);
    watch.turnEnds(watched);
    await watch.settled(ID);
    const files = reports[0]?.diffs?.[0]?.files;
    expect(files).toMatchObject([{ path: "ship/b-***", patch: expect.stringContaining("+x *** y\n") }]);
  });

  test("that waits for its turn is masked by the secrets of work that begins meanwhile", async () => {
    const { work, watch } = program();
    const checkouts = [{ location: "ship", remoteUri: "https://git.example.org/ship.git", commit }];
    const watched = { environmentId: ID, workspace, checkouts, secrets: new Secrets() };
    const turn = Promise.withResolvers<void>();
    const before = watch.exclusively(watched, () => turn.promise);
    const refreshed = watch.refresh(watched);
    work();
    turn.resolve();
    await Promise.all([before, refreshed]);
    const text = JSON.stringify(reports, (_, value) => (typeof value === "bigint" ? String(value) : value));
    expect([text.includes("b-***"), text.includes(SECRET)]).toEqual([true, false]);
  });

  test("is refused by a program that does not know the secrets of the one before, until there is work", async () => {
    program().work()();
    const next = program();
    for (const question of [list, read, diff(), refresh])
      await expect(next.ask(question)).rejects.toMatchObject({ reason: "secrets_unknown" });
    next.work();
    expect(await next.ask(read)).toMatchObject({ data: Buffer.from("x *** y") });
  });

  test("is refused, and reports have no patch, until all are known that somebody's work had", async () => {
    const before = program();
    before.work(SECRET, ["one"])();
    before.work("another secret", ["another"])();
    const next = program();
    next.work("another secret", ["another"])();
    await expect(next.ask(read)).rejects.toMatchObject({ reason: "secrets_unknown" });
    const checkouts = [{ location: "ship", remoteUri: "https://git.example.org/ship.git", commit }];
    const end = async () => {
      reports.length = 0;
      next.watch.turnEnds({ environmentId: ID, workspace, checkouts, secrets: new Secrets() });
      await next.watch.settled(ID);
      return reports[0]?.diffs?.flatMap(({ files }) => files);
    };
    const patchOmission = EnvironmentFileDiff_PatchOmission.SECRETS_UNKNOWN;
    const hidden = { patch: "", patchOmission };
    expect(await end()).toMatchObject([hidden, hidden]);
    next.work(SECRET, ["one", "new"])();
    expect(await next.ask(read)).toMatchObject({ data: Buffer.from("x *** y") });
    const shown = { patch: expect.stringContaining("+x *** y\n") };
    expect(await end()).toMatchObject([shown, shown]);
  });

  test("needs no secrets where there was no work", async () => {
    expect(await program().ask(list)).toMatchObject({ files: [{ name: "a.txt" }, {}] });
  });

  test("says that an environment is not there, and that a question is not known", async () => {
    const { ask } = program();
    const elsewhere = ID.replace("7", "8");
    await expect(ask(list, elsewhere)).rejects.toMatchObject({ reason: "environment_absent" });
    await expect(ask(of({ case: undefined }))).rejects.toMatchObject({ reason: "question_unknown" });
    const unknown = of({ case: "diffToCommit", value: { commit: "--all", offset: 0, limit: 1 } });
    await expect(ask(unknown)).rejects.toMatchObject({ reason: "commit_unknown" });
  });
});

describe("the last turn's diff of a report", () => {
  test.each([
    ["what it wrote before the look at the one before, and what that one wrote", true],
    ["only what it wrote", false],
  ])("is %s", async (_, isWrittenBefore) => {
    const { watch } = program();
    const checkouts = [{ location: "ship", remoteUri: "https://git.example.org/ship.git", commit }];
    const watched = { environmentId: ID, workspace, checkouts, secrets: new Secrets() };
    const fileOf = (name: string) => join(workspace.tree, "ship", name);
    watch.turnBegins(watched);
    writeFileSync(fileOf("one"), "1\n");
    watch.turnEnds(watched);
    await watch.settled(ID);
    watch.turnBegins(watched);
    writeFileSync(fileOf("two"), "2\n");
    // The clock of a file system may be behind a little.
    await until(
      () => Date.now(),
      (now) => now > statSync(fileOf("two")).ctimeMs + 50,
    );
    const held = Promise.withResolvers<void>();
    void watch.exclusively(watched, () => held.promise);
    watch.turnEnds(watched);
    watch.turnBegins(watched);
    if (isWrittenBefore) writeFileSync(fileOf("three"), "3\n");
    held.resolve();
    await watch.settled(ID);
    writeFileSync(fileOf("four"), "4\n");
    watch.turnEnds(watched);
    await watch.settled(ID);
    const diff = reports.at(-1)?.diffs?.find(({ base }) => base === DiffBase.LAST_TURN);
    expect(diff?.files?.map(({ path }) => path)).toEqual(
      isWrittenBefore ? ["ship/four", "ship/three", "ship/two"] : ["ship/four"],
    );
  });
});
