import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { post, repository } from "../harness/call.ts";
import { dataEnvironmentOf } from "../harness/data-config.ts";
import { testOnSqlite } from "../harness/engine.ts";
import { postgresUrl } from "../harness/postgres-database.ts";
import { ROOT, runProgram, terminalEnvironment } from "../harness/program.ts";
import { countOf, type RawData, tablesOf, withRawData, withRawFile } from "../harness/raw-data.ts";
import {
  runCommand,
  runHostedCommand,
  startHostedServer,
  startServer,
  stopAll,
  type TestServer,
  temporaryFolder,
} from "../harness/server.ts";
import { until } from "../harness/until.ts";

afterAll(stopAll);

const CLIENTS = 8;

const isPostgres = postgresUrl() !== undefined;

/** Tables of a backup that a database has in another form: its migrations, and no index of texts that is tables. */
const OTHER_ON_POSTGRES = /^(migration|project_search.*)$/;

/** Rows of every table, as far as the engine of the run has it as the other does. */
async function counts(raw: RawData): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const table of await tablesOf(raw))
    if (!(isPostgres && OTHER_ON_POSTGRES.test(table))) found[table] = await countOf(raw, table);
  return found;
}

/** How many projects have a text among what a search looks at. */
async function containing(file: string, text: string): Promise<number> {
  const projects = "select id from project where instr(search_text, ?) > 0";
  return (await withRawFile(file, (raw) => raw.rows(projects, text))).length;
}

/** Gives a restored copy the key file of its time. */
function copyKey(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  copyFileSync(join(from, "key.json"), join(to, "key.json"));
}

/** Clients that create projects until they are stopped; how many were created. */
function load(server: TestServer) {
  let isRunning = true;
  let created = 0;
  const waiting = new Map<() => void, number>();
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    while (isRunning) {
      const initializer = repository(`https://git.example.org/team/load-${client}-${created}.git`);
      const { status } = await post(server, "ProjectService/CreateProject", { initializer });
      expect(status).toBe(200);
      created += 1;
      for (const [resolve, count] of waiting) if (created >= count) resolve();
    }
  });
  return {
    until: (count: number) => new Promise<void>((resolve) => void waiting.set(resolve, count)),
    created: () => created,
    async stop() {
      isRunning = false;
      await Promise.all(clients);
    },
  };
}

describe("chartroom backup and restore", () => {
  test("under load give a folder that starts, with equal counts and a chain that verifies", async () => {
    const server = await startServer();
    const backup = join(temporaryFolder(), "chartroom.backup");
    const clients = load(server);
    await clients.until(200);
    const { before, written, after } = await until(
      async () => {
        rmSync(backup, { force: true });
        const before = clients.created();
        const written = await runCommand(["backup", backup, "--data-dir", server.dataDir]);
        return { before, written, after: clients.created() };
      },
      // The load went on meanwhile; a server may stall for as long as a backup takes.
      ({ before, after }) => after > before,
    );
    await clients.stop();
    expect([written.code, written.stderr]).toEqual([0, ""]);
    expect(written.stdout).toContain(`keep a copy of ${join(server.dataDir, "key.json")}`);
    // What was answered before the backup began is in it.
    const copied = await withRawFile(backup, counts);
    expect(copied.project).toBeGreaterThanOrEqual(before);
    expect(copied.project).toBeLessThanOrEqual(after + CLIENTS);
    expect(statSync(backup).mode & 0o777).toBe(0o600);

    const folder = join(temporaryFolder(), "restored");
    const restored = await runCommand(["restore", backup, "--data-dir", folder]);
    expect([restored.code, restored.stderr]).toEqual([0, ""]);
    expect(restored.stdout).toContain(`Copy the key file of that time to ${join(folder, "key.json")}`);
    if (!isPostgres) expect(readdirSync(folder)).toEqual(["chartroom.db"]);
    expect(await withRawData(folder, counts)).toEqual(copied);
    copyKey(server.dataDir, folder);
    const verified = await runHostedCommand(["audit", "verify", "--data-dir", folder]);
    expect([verified.code, verified.stdout.trimEnd().split("\n").at(-1)]).toEqual([0, "every chain holds"]);

    const next = await startHostedServer({ dataDir: folder });
    const { body } = await post(
      next,
      "ProjectService/ListProjects",
      { pagination: { pageSize: 1 } },
      server.token,
    );
    expect(body.projects).toHaveLength(1);
    const search = { filter: { search: "OAD-5-" }, count: { include: true } };
    const found = await post(next, "ProjectService/ListProjects", search, server.token);
    expect(found.body.count.value).toBe(await containing(backup, "oad-5-"));
    expect(await withRawData(folder, counts)).toMatchObject({ project: copied.project });
    await Promise.all([next.stop(), server.stop()]);
  });

  /** Interrupts a command as soon as it writes a file whose name ends like that; what it said, and what is left. */
  const interrupted = (signal: NodeJS.Signals, args: readonly string[], folder: string, ending: RegExp) =>
    until(
      async () => {
        const watcher = watch(folder, { recursive: true });
        const child = spawn(process.execPath, ["bin/chartroom.js", ...args], {
          cwd: ROOT,
          env: { ...terminalEnvironment(), ...dataEnvironmentOf(args.at(-1) ?? "") },
        });
        let stderr = "";
        child.stderr.on("data", (text) => {
          stderr += text;
        });
        watcher.on("change", (_, name) => {
          if (!child.killed && ending.test(String(name))) child.kill(signal);
        });
        await once(child, "close");
        watcher.close();
        const left = readdirSync(folder, { recursive: true }).map(String).toSorted();
        rmSync(join(folder, "it"), { recursive: true, force: true });
        return { signal: child.signalCode, stderr, left };
      },
      // It may be done before the signal comes.
      ({ signal, stderr }) => signal !== null && !stderr.includes("is written and complete"),
    );

  test("leave nothing of a file when they are interrupted", async () => {
    const server = await startHostedServer();
    const data = ["--data-dir", server.dataDir];
    const folder = temporaryFolder();
    for (const signal of ["SIGINT", "SIGTERM"] as const)
      expect(await interrupted(signal, ["backup", join(folder, "it"), ...data], folder, /\.draft$/)).toEqual({
        signal,
        stderr: "chartroom: interrupted: nothing was written\n",
        left: [],
      });
    const copies = join(folder, "it");
    for (const ending of [/\.draft$/, /checking$/]) {
      const backUp = ["backup", copies, "--keep", "3", ...data];
      const { stderr, left } = await interrupted("SIGINT", backUp, folder, ending);
      expect([stderr, left.filter((name) => !name.includes("backup.lock"))]).toEqual([
        "chartroom: interrupted: nothing was written\n",
        ["it"],
      ]);
    }
  });

  test("to the same file exclude each other, and the draft of one that was killed does not stop the next", async () => {
    const server = await startHostedServer();
    const folder = temporaryFolder();
    const backup = join(folder, "it");
    const args = ["backup", backup, "--data-dir", server.dataDir];
    const held = await until(
      async () => {
        rmSync(backup, { force: true });
        const watcher = watch(folder);
        const child = spawn(process.execPath, ["bin/chartroom.js", ...args], {
          cwd: ROOT,
          env: { ...terminalEnvironment(), ...dataEnvironmentOf(server.dataDir) },
        });
        const exited = once(child, "exit");
        const drafted = new Promise<void>((resolve) => {
          watcher.on("change", (_, name) => {
            if (/\.draft$/.test(String(name)) && child.kill("SIGSTOP")) resolve();
          });
        });
        await Promise.race([drafted, exited]);
        watcher.close();
        return { child, exited, files: readdirSync(folder) };
      },
      // It may be done before the signal comes.
      ({ files }) => files.includes("it.draft") && !files.includes("it"),
    );
    const second = await runHostedCommand(args);
    held.child.kill("SIGKILL");
    await held.exited;
    expect([second.code, second.stderr]).toEqual([
      1,
      `chartroom: another backup to ${backup} is being made: wait until it is done, or name another file\n`,
    ]);
    expect(readdirSync(folder)).toContain("it.draft");
    expect(await runHostedCommand(args)).toMatchObject({ code: 0, stderr: "" });
    expect(readdirSync(folder)).toEqual(["it"]);
  });

  testOnSqlite("a restore into PostgreSQL writes no file")(
    "leave no folder of a restore that is interrupted",
    async () => {
      const server = await startHostedServer();
      const folder = temporaryFolder();
      const backup = join(temporaryFolder(), "chartroom.backup");
      expect((await runHostedCommand(["backup", backup, "--data-dir", server.dataDir])).code).toBe(0);
      const restore = ["restore", backup, "--data-dir", join(folder, "it")];
      expect(await interrupted("SIGINT", restore, folder, /^it$|\.draft$/)).toEqual({
        signal: "SIGINT",
        stderr: "chartroom: interrupted: nothing was written\n",
        left: [],
      });
    },
  );

  test("overwrite nothing, and take nothing that is no whole backup", async () => {
    const server = await startHostedServer();
    await server.stop();
    const folder = temporaryFolder();
    const backup = join(folder, "chartroom.backup");
    const backUp = () => runHostedCommand(["backup", backup, "--data-dir", server.dataDir]);
    const restore = (file: string, to: string) => runHostedCommand(["restore", file, "--data-dir", to]);
    const nowhere = join(folder, "none", "chartroom.backup");
    expect(await runHostedCommand(["backup", nowhere, "--data-dir", server.dataDir])).toMatchObject({
      code: 1,
      stderr: `chartroom: ${nowhere} cannot be written: there is no folder ${dirname(nowhere)}: make it, or name another\n`,
    });
    expect((await backUp()).code).toBe(0);
    expect(
      readFileSync(backup).includes(readFileSync(join(server.dataDir, "key.json")).subarray(30, 60)),
    ).toBe(false);
    const again = await backUp();
    expect([again.code, again.stderr]).toEqual([
      1,
      `chartroom: ${backup} exists already: name a file that does not\n`,
    ]);
    const occupied = await restore(backup, server.dataDir);
    expect([occupied.code, occupied.stderr]).toEqual([
      1,
      expect.stringMatching(
        isPostgres
          ? /^chartroom: the database \S+ at \S+ cannot be used: the database holds data already: name one that is empty\n$/
          : /^chartroom: the folder \S+ is not empty: name one that is, or one that does not exist\n$/,
      ),
    ]);
    const damaged = join(folder, "damaged");
    writeFileSync(damaged, readFileSync(backup).subarray(0, 20_000));
    const target = join(folder, "target");
    const refused = await restore(damaged, target);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining("is no backup, or it is damaged"),
    ]);
    expect(existsSync(target)).toBe(false);
    expect((await restore(join(folder, "absent"), target)).stderr).toBe(
      `chartroom: there is no file ${join(folder, "absent")}\n`,
    );
    expect(readdirSync(folder).toSorted()).toEqual(["chartroom.backup", "damaged"]);
  });

  testOnSqlite("PostgreSQL builds its own indexes and checks references")(
    "are refused for an index that lacks a row of its table, and for a row that refers to none",
    async () => {
      const server = await startHostedServer();
      await server.stop();
      const folder = temporaryFolder();
      const [backup, target] = [join(folder, "chartroom.backup"), join(folder, "target")];
      expect((await runHostedCommand(["backup", backup, "--data-dir", server.dataDir])).code).toBe(0);
      /** Changes a copy in steps, each on a connection of its own, and returns why it is not restored. */
      const refusalOf = async (...steps: string[]) => {
        const file = join(folder, "damaged");
        copyFileSync(backup, file);
        for (const step of steps) {
          const raw = new Database(file);
          raw.unsafeMode();
          raw.exec(`pragma foreign_keys = off; pragma writable_schema = on; ${step}`);
          raw.close();
        }
        const { code, stderr } = await runHostedCommand(["restore", file, "--data-dir", target]);
        expect([code, existsSync(target)]).toEqual([1, false]);
        return stderr;
      };
      const hidden = "sqlite_master where name = 'member_by_joining'";
      const stale = await refusalOf(
        `create table hidden as select * from ${hidden}; delete from ${hidden}`,
        "update member set created_at = created_at + 1",
        "insert into sqlite_master select * from hidden; drop table hidden",
      );
      expect(stale).toMatch(/damaged: row 1 missing from index member_by_joining\n$/);
      expect(await refusalOf("delete from account")).toMatch(/damaged: \d+ of its rows refer to rows/);
    },
  );

  test("takes no folder and no pipe for a backup", async () => {
    const folder = temporaryFolder();
    const [pipe, target] = [join(folder, "pipe"), join(folder, "target")];
    expect((await runProgram("mkfifo", [pipe])).code).toBe(0);
    for (const file of [folder, pipe]) {
      const { code, stderr } = await runHostedCommand(["restore", file, "--data-dir", target]);
      expect([code, stderr]).toEqual([1, `chartroom: ${file} is no file: name that of a backup\n`]);
    }
  });

  test("need the keys of their time: another key file starts nothing", async () => {
    const server = await startHostedServer();
    await server.stop();
    const backup = join(temporaryFolder(), "chartroom.backup");
    const folder = join(temporaryFolder(), "restored");
    await runHostedCommand(["backup", backup, "--data-dir", server.dataDir]);
    await runHostedCommand(["restore", backup, "--data-dir", folder]);
    await expect(startHostedServer({ dataDir: folder })).rejects.toThrow("is not the one that the data in");
  });
});
