import { chmodSync, existsSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { testOnSqlite } from "../harness/engine.ts";
import { onOwnDisk, testWithOwnDisk } from "../harness/own-disk.ts";
import { ROOT, runProgram } from "../harness/program.ts";
import { tampering } from "../harness/raw-data.ts";
import { runCommand, startServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

afterAll(stopAll);

/** A start that must fail: what it said, which is a sentence and no stack. */
async function complaint(args: readonly string[], within: readonly string[] = []): Promise<string> {
  const [program = "", ...rest] = [
    ...within,
    process.execPath,
    "bin/chartroom.js",
    "serve",
    "--port",
    "0",
    ...args,
  ];
  const run = await runProgram(program, rest, { cwd: ROOT });
  expect([run.code, run.stdout]).toEqual([1, ""]);
  expect(run.stderr).toMatch(/^chartroom: /);
  expect(run.stderr).not.toMatch(/\n\s+at /);
  return run.stderr;
}

describe("a data folder", () => {
  test("below /proc is refused, not tried for ever", async () => {
    expect(await complaint(["--data-dir", "/proc/foo/bar"])).toContain(
      "the folder /proc/foo/bar cannot be used: the system allows no folder there",
    );
  });

  testWithOwnDisk("on a read-only file system is called that", async () => {
    const folder = temporaryFolder();
    const within = onOwnDisk(folder, "ro");
    for (const dataDir of [folder, join(folder, "new")]) {
      expect(await complaint(["--data-dir", dataDir], within)).toContain(
        `the folder ${dataDir} cannot be used: its file system is read-only`,
      );
    }
  });

  testOnSqlite("servers share a database")(
    "whose lock was moved away is still that of the running server",
    async () => {
      const server = await startServer();
      const lock = join(server.dataDir, "server.lock");
      renameSync(lock, join(server.dataDir, "elsewhere"));
      for (let tries = 0; tries < 2; tries += 1) {
        expect(await complaint(["--data-dir", server.dataDir])).toContain(
          `another server already uses the data folder ${server.dataDir}`,
        );
      }
      expect((await post(server, "ProjectService/ListProjects")).status).toBe(200);
      expect(await server.stop()).toBe(0);
      expect(existsSync(lock)).toBe(false);
      const next = await startServer({ dataDir: server.dataDir });
      expect((await post(next, "ProjectService/ListProjects", {}, server.token)).status).toBe(200);
      expect(await next.stop()).toBe(0);
    },
  );
});

test("a host that other machines reach is warned of without TLS, and the base URL is handed out", async () => {
  const baseUrl = "http://chartroom.example.org";
  const server = await startServer({ args: ["--host", "0.0.0.0", "--base-url", baseUrl] });
  expect(server.url).toBe(baseUrl);
  const warned = () => server.log().find(({ host }) => host === "0.0.0.0");
  expect(await until(warned, Boolean)).toMatchObject({
    level: "warn",
    msg: expect.stringMatching(/without TLS: tokens travel/),
  });
});

test("a key for ssh that is not there, or that others can read, is refused by server and runner", async () => {
  const open = join(temporaryFolder(), "open");
  writeFileSync(open, "a key");
  chmodSync(open, 0o644);
  for (const command of [
    ["serve", "--port", "0", "--data-dir", temporaryFolder()],
    ["runner", "--state-dir", temporaryFolder()],
  ]) {
    const [absent, readable] = await Promise.all(
      ["/nope", open].map((file) => runCommand([...command, "--ssh-key-file", file])),
    );
    expect([absent?.code, readable?.code]).toEqual([1, 1]);
    expect(absent?.stderr).toContain("--ssh-key-file /nope cannot be read: ENOENT");
    expect(readable?.stderr).toContain(`--ssh-key-file ${open} can be read by others: chmod 600 it`);
  }
});

test("a clock behind the newest record is warned of", async () => {
  const server = await startServer();
  const made = await post(server, "UserService/CreatePersonalAccessToken", { description: "x" });
  expect(made.status).toBe(200);
  expect(await server.stop()).toBe(0);
  // The row says the time; ids only give the order.
  await tampering(server.dataDir, (raw) => raw.run("update audit_log set at = at + 3600000"));
  const later = await startServer({ dataDir: server.dataDir });
  await until(
    async () => later.log().filter(({ msg }) => /clock of this machine is behind/.test(String(msg))),
    (lines) => lines.length === 1 && Number(lines[0]?.behindSeconds) > 3000,
  );
});

test("a key file that every user of the machine may read is warned of", async () => {
  const server = await startServer();
  const keyFile = join(server.dataDir, "key.json");
  const isAbout = ({ msg }: Record<string, unknown>) => /may read or write the key file/.test(String(msg));
  expect(await server.stop()).toBe(0);
  expect(server.log().filter(isAbout)).toEqual([]);
  chmodSync(keyFile, 0o604);
  const open = await startServer({ dataDir: server.dataDir });
  const [line] = await until(
    async () => open.log().filter(isAbout),
    (lines) => lines.length > 0,
  );
  expect(line).toMatchObject({
    level: "warn",
    keyFile,
    msg: expect.stringMatching(`: chmod 600 ${keyFile}$`),
  });
});

test("--version tells the version", async () => {
  const { code, stdout } = await runCommand(["--version"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^chartroom \d+\.\d+\.\d+ on Node 24\./);
});
