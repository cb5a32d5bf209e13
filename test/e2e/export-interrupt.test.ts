import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, rmSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { writeExport } from "../../src/commands/files/export.ts";
import type { WhenInterrupted } from "../../src/commands/folders/interrupted.ts";
import { post, repository } from "../harness/call.ts";
import { ROOT, terminalEnvironment } from "../harness/program.ts";
import { startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

afterAll(stopAll);

test("an export that is interrupted while it writes completes its files, says so, and ends by the signal", async () => {
  const server = await startHostedServer();
  for (const name of ["one", "two", "three"])
    await post(server, "ProjectService/CreateProject", {
      name,
      initializer: repository("https://git.example.org/team/a.git"),
    });
  const folder = temporaryFolder();
  const target = join(folder, "it");
  const interrupted = await until(
    async () => {
      rmSync(target, { recursive: true, force: true });
      const watcher = watch(folder);
      const env = { ...terminalEnvironment(), CHARTROOM_SERVER: server.url, CHARTROOM_TOKEN: server.token };
      const child = spawn(process.execPath, ["bin/chartroom.js", "export", target], { cwd: ROOT, env });
      let stderr = "";
      child.stderr.on("data", (text) => {
        stderr += text;
      });
      watcher.on("change", () => {
        if (!child.killed) child.kill("SIGINT");
      });
      await once(child, "close");
      watcher.close();
      return {
        signal: child.signalCode,
        stderr,
        files: existsSync(target) ? readdirSync(target).toSorted() : [],
      };
    },
    // It may be done before the signal comes.
    ({ signal, stderr }) => signal !== null && stderr !== "",
  );
  expect(interrupted).toEqual({
    signal: "SIGINT",
    stderr: `chartroom: interrupted: ${target} is written and complete\n`,
    files: expect.arrayContaining(["chartroom.yaml", "projects.yaml"]),
  });
});

/** Interrupts the work at its end. @returns what the command prints */
function interrupting() {
  const told: string[] = [];
  const whenInterrupted: WhenInterrupted = (cleanUp) => async () => void told.push(cleanUp());
  return { told, whenInterrupted };
}

test("an export that writes nothing says so when it is interrupted", async () => {
  const found = { files: new Map([["chartroom.yaml", [{ kind: "Folder", owner: "main" }]]]), leftOut: [] };
  const folder = temporaryFolder();
  const written = interrupting();
  await writeExport(found, join(folder, "new"), written.whenInterrupted);
  expect(written.told).toEqual([`interrupted: ${join(folder, "new")} is written and complete`]);
  writeFileSync(join(folder, "chartroom.yaml"), "");
  const refused = interrupting();
  await expect(writeExport(found, folder, refused.whenInterrupted)).rejects.toThrow(
    "there are files already",
  );
  expect(refused.told).toEqual(["interrupted: nothing was written"]);
});
