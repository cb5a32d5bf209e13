import { cpSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { writeState } from "../../src/runner/protocol/runner-state.ts";
import { environmentWorkspace, prepareWorkDir } from "../../src/runner/steps/work-dirs.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

const ID = "0198a3f0-0000-7000-8000-000000000001";
const registration = {
  server: "in this process",
  runnerId: "r",
  token: "t",
  instance: { id: "01900000-0000-7000-8000-000000000001", folder: "/elsewhere" },
};

/** A folder that several runners have theirs in. */
const place = () => realpathSync(mkdtempSync(join(temporaryFolder(), "place-")));

/** Starts a runner as far as its folders go. @returns where the environment's workspace is, and the folders warned of */
async function start(stateDir: string, workDir: string) {
  mkdirSync(stateDir, { recursive: true });
  const warned: unknown[] = [];
  const log = { warn: (facts: object) => void warned.push(facts) };
  const folders = await prepareWorkDir(stateDir, workDir, log);
  await writeState(stateDir, registration);
  return { folder: environmentWorkspace(folders, ID).folder, warned };
}

/** A runner with one workspace. @returns its folders, and where the workspace is */
async function startedWithWorkspace(state = "data") {
  const at = place();
  const [stateDir, workDir] = [join(at, state), join(at, "work")];
  const { folder } = await start(stateDir, workDir);
  expect(folder).toBe(join(workDir, "workspaces", ID));
  mkdirSync(folder);
  return { at, stateDir, workDir, workspace: folder };
}

test("a copied state folder leaves the workspaces of the original alone", async () => {
  const { at, stateDir, workDir } = await startedWithWorkspace();
  // Where earlier releases had them.
  mkdirSync(join(stateDir, "workspaces"));
  const [copy, own] = [join(at, "copy"), join(at, "own")];
  cpSync(stateDir, copy, { recursive: true });
  const started = await start(copy, own);
  expect(started.folder).toBe(join(own, "workspaces", ID));
  expect(started.warned).toEqual([
    { folder: workDir, owner: stateDir },
    { folder: stateDir, owner: stateDir },
  ]);
  // It is over with that, and the original goes on as before.
  expect((await start(copy, own)).warned).toEqual([]);
  expect(await start(stateDir, join(at, "next"))).toEqual({
    folder: join(workDir, "workspaces", ID),
    warned: [],
  });
});

test("a copied state folder cannot use the original's folder by a setting either", async () => {
  const { at, stateDir, workDir, workspace } = await startedWithWorkspace();
  const copy = join(at, "copy");
  cpSync(stateDir, copy, { recursive: true });
  await expect(start(copy, workDir)).rejects.toThrow(
    `the workspaces in ${workDir} belong to the runner whose state is in ${stateDir}: choose another folder`,
  );
  // Until the original is gone, or the file that the message names.
  rmSync(join(stateDir, "runner.json"));
  expect(await start(copy, workDir)).toEqual({ folder: workspace, warned: [] });
});

test("a moved state folder keeps its workspaces", async () => {
  const { at, stateDir, workspace } = await startedWithWorkspace();
  const moved = join(at, "moved");
  renameSync(stateDir, moved);
  expect(await start(moved, join(at, "next"))).toEqual({ folder: workspace, warned: [] });
  // From then on they are its own: what is copied back is the copy.
  cpSync(moved, stateDir, { recursive: true });
  expect((await start(stateDir, join(at, "third"))).folder).not.toBe(workspace);
});

test("a state folder that holds the workspaces can be copied and moved with them", async () => {
  const at = place();
  const [stateDir, copy, moved] = [join(at, "state"), join(at, "copy"), join(at, "moved")];
  mkdirSync((await start(stateDir, stateDir)).folder);
  cpSync(stateDir, copy, { recursive: true });
  renameSync(stateDir, moved);
  for (const folder of [copy, moved]) {
    expect(await start(folder, folder)).toEqual({ folder: join(folder, "workspaces", ID), warned: [] });
  }
});

test("a state folder of an earlier release finds what it holds and what was made elsewhere since", async () => {
  const { stateDir, workDir, workspace } = await startedWithWorkspace("runner");
  const old = "0198a3f0-0000-7000-8000-000000000002";
  mkdirSync(join(stateDir, "workspaces", old), { recursive: true });
  const folders = await prepareWorkDir(stateDir, stateDir, { warn: () => undefined });
  expect([ID, old].map((id) => environmentWorkspace(folders, id).folder)).toEqual([
    workspace,
    join(stateDir, "workspaces", old),
  ]);
  expect(workspace.startsWith(workDir)).toBe(true);
});

test("a token that was moved to the folder of the workspaces finds them", async () => {
  const { stateDir, workDir, workspace } = await startedWithWorkspace("runner");
  renameSync(join(stateDir, "runner.json"), join(workDir, "runner.json"));
  expect(await start(workDir, workDir)).toEqual({ folder: workspace, warned: [] });
});
