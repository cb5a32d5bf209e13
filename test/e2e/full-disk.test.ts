import { spawnSync } from "node:child_process";
import { rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect } from "@jest/globals";
import { post, reasonOf, repository } from "../harness/call.ts";
import { onOwnDisk, runBeside, testWithOwnDisk } from "../harness/own-disk.ts";
import {
  startHostedServer,
  startServer,
  stopAll,
  type TestServer,
  temporaryFolder,
} from "../harness/server.ts";
import { until } from "../harness/until.ts";

afterAll(stopAll);

const create = (server: TestServer, name: string, token: string) =>
  post(
    server,
    "ProjectService/CreateProject",
    {
      name,
      initializer: repository("https://git.example.org/a.git"),
      technicalDescription: "x".repeat(8000),
    },
    token,
  );
/** Below what the whole disk has. */
const FLOOR = ["--disk-floor", "4"];
const lessThanFloor = (left: number) => ({
  check: "disk",
  reason: `the disk of the data folder has ${left} MiB left, less than the floor of 4 MiB (--disk-floor)`,
});
const readyz = async (server: TestServer) => {
  const res = await fetch(`${server.url}/readyz`);
  return { status: res.status, body: await res.json() };
};

testWithOwnDisk(
  "a full disk is called that, reads go on, and so does all else once there is room",
  async () => {
    const dataDir = temporaryFolder();
    const server = await startServer({ dataDir, commandPrefix: onOwnDisk(dataDir, "size=16m"), args: FLOOR });
    const token = await until(
      async () => /cr_pat_\w+/.exec(server.output())?.[0] ?? "",
      (found) => found !== "",
    );
    expect((await create(server, "before", token)).status).toBe(200);
    // The folder as the server sees it.
    const seen = join(`/proc/${server.process.pid}/root`, dataDir);
    const fill = () => {
      const { bavail, bsize } = statfsSync(seen);
      writeFileSync(join(seen, "filler"), Buffer.alloc(bavail * bsize));
    };
    fill();
    // What room is left in files that are there already is used up first.
    const refused = await until(
      () => create(server, "during", token),
      ({ status }) => status !== 200,
    );
    expect([refused.status, refused.body.code, reasonOf(refused)]).toEqual([
      503,
      "unavailable",
      "UNAVAILABLE",
    ]);
    expect(refused.body.message).not.toContain("busy");
    const reason = "the disk of the data folder is full";
    const problems = [{ check: "database", reason }, lessThanFloor(0)];
    const red = { status: 503, body: { status: "unavailable", reason, problems } };
    expect(
      await until(
        () => readyz(server),
        ({ body }) => body.problems?.length === 2,
      ),
    ).toEqual(red);
    const listed = await post(server, "ProjectService/ListProjects", {}, token);
    expect(listed.status).toBe(200);
    expect(listed.body.projects.length).toBeGreaterThanOrEqual(1);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    // The operator sees what fills the disk.
    const command = ["bin/chartroom.js", "organization", "list", "--data-dir", dataDir];
    const organizations = runBeside(server.process, [process.execPath, ...command]);
    expect([organizations.stderr, organizations.status]).toEqual(["", 0]);
    expect(organizations.stdout).toContain("My organization");
    await until(
      async () => server.log().find(({ msg }) => msg === "the database accepts no changes; reads still work"),
      (line) => line?.problem === "the disk of the data folder is full",
    );

    rmSync(join(seen, "filler"));
    await until(
      () => readyz(server),
      ({ status }) => status === 200,
    );
    expect((await create(server, "after", token)).status).toBe(200);

    fill();
    await until(
      () => create(server, "during", token),
      ({ status }) => status !== 200,
    );
    expect(await server.stop()).toBe(0);
  },
);

testWithOwnDisk(
  "under its floor a disk makes the server red, writes go on, and room makes it green",
  async () => {
    const dataDir = temporaryFolder();
    const server = await startServer({ dataDir, commandPrefix: onOwnDisk(dataDir, "size=32m"), args: FLOOR });
    const token = await until(
      async () => /cr_pat_\w+/.exec(server.output())?.[0] ?? "",
      (found) => found !== "",
    );
    expect((await readyz(server)).status).toBe(200);
    const seen = join(`/proc/${server.process.pid}/root`, dataDir);
    const { bavail, bsize } = statfsSync(seen);
    writeFileSync(join(seen, "filler"), Buffer.alloc(bavail * bsize - 2.5 * 1024 * 1024));
    const problem = lessThanFloor(2);
    // It may have looked while the filler was being written, and looks again.
    const red = await until(
      () => readyz(server),
      ({ body }) => body.reason === problem.reason,
    );
    expect(red.status).toBe(503);
    expect(red.body).toEqual({ status: "unavailable", reason: problem.reason, problems: [problem] });
    expect((await create(server, "during", token)).status).toBe(200);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    await until(
      async () => server.log(),
      (lines) => lines.some(({ msg, check }) => msg === "the server is not ready" && check === "disk"),
    );

    rmSync(join(seen, "filler"));
    await until(
      () => readyz(server),
      ({ status }) => status === 200,
    );
  },
);

testWithOwnDisk(
  "a copy for which there is no room, or none to check it, is none: what was there stays, and nothing half",
  async () => {
    const { dataDir } = await startHostedServer();
    const folder = temporaryFolder();
    const older = "chartroom-20260101T000000.000Z.db";
    // The folder is seen by these processes only.
    const script = `touch ${folder}/${older}; "$@"; echo $?; ls ${folder}`;
    const args = ["bin/chartroom.js", "backup", folder, "--keep", "1", "--data-dir", dataDir];
    const full = "cannot be written: the disk is full: make room there, or use another disk";
    // Room for no copy, and for one but not for what is restored of it.
    for (const [size, problem] of [
      ["512k", `${folder}/chartroom-\\S+\\.unchecked ${full}`],
      ["2m", `the copy could not be checked: ${folder}/checking ${full}`],
    ] as const) {
      const [program = "", ...rest] = onOwnDisk(folder, `size=${size}`);
      const run = spawnSync(program, [...rest, "sh", "-c", script, "sh", process.execPath, ...args], {
        encoding: "utf8",
      });
      expect([run.stderr, run.stdout]).toEqual([
        expect.stringMatching(`^chartroom: ${problem}\n$`),
        `1\nbackup.lock\n${older}\n`,
      ]);
    }
  },
);
