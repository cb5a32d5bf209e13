import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import {
  runHostedCommand,
  startHostedServer,
  startServer,
  stopAll,
  type TestServer,
  temporaryFolder,
} from "../harness/server.ts";

/** A server that was killed after its first start. What it has made is in the log of changes alone. */
let killed: TestServer;
beforeAll(async () => {
  killed = await startServer();
  await killed.kill();
});
afterAll(stopAll);

/** Returns a copy of its folder without some files. */
function copyWithout(...endings: readonly string[]): string {
  const folder = join(temporaryFolder(), "data");
  cpSync(killed.dataDir, folder, { recursive: true });
  for (const ending of endings) rmSync(join(folder, `chartroom.db${ending}`));
  return folder;
}

interface Loss {
  readonly name: string;
  readonly lost: readonly string[];
  readonly what: (folder: string) => string;
  readonly advice: string;
}

const LOSSES: readonly Loss[] = [
  {
    name: "the log of changes",
    lost: ["-wal", "-shm"],
    what: (folder) => `the chartroom.db in ${folder} is empty, although a server has left server.url`,
    advice: "restore a backup, or put back chartroom.db and chartroom.db-wal as they were together",
  },
  {
    name: "the database",
    lost: ["", "-wal", "-shm"],
    what: (folder) => `there is no chartroom.db in ${folder}, where a server has left server.url`,
    advice: "put it back, or restore a backup; for a new installation, name another folder",
  },
];

describe("a data folder that has lost", () => {
  for (const { name, lost, what, advice } of LOSSES)
    test(`${name} is no new one, at the first start nor at the next`, async () => {
      const folder = copyWithout(...lost);
      for (let tries = 0; tries < 2; tries += 1) {
        const start = startHostedServer({ dataDir: folder });
        await expect(start).rejects.toThrow(what(folder));
        await expect(start).rejects.toThrow(advice);
        const { code, stdout } = await runHostedCommand(["doctor", "--data-dir", folder]);
        expect(code).toBe(1);
        expect(stdout).toContain(`wrong  database     ${what(folder)}`);
      }
    });

  test("none of its files goes on after a kill", async () => {
    const server = await startHostedServer({ dataDir: copyWithout() });
    expect((await post({ ...server, token: killed.token }, "ProjectService/ListProjects")).status).toBe(200);
    await server.stop();
  });
});

test("a first start says in which folder the new installation is", () => {
  expect(killed.output()).toContain(`administrator were created in ${killed.dataDir}.`);
});

test("a first start that fails before it has made an organization may be made again", async () => {
  const running = await startHostedServer();
  const folder = join(temporaryFolder(), "data");
  const busy = startHostedServer({ dataDir: folder, args: ["--port", String(running.port)] });
  await expect(busy).rejects.toThrow("is in use");
  const server = await startHostedServer({ dataDir: folder });
  expect(server.token).not.toBe("");
});
