import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { openOrThrow } from "../../src/commands/open-data.ts";
import { SETTINGS } from "../../src/config/config.ts";
import { post } from "../harness/call.ts";
import { dataEnvironmentOf } from "../harness/data-config.ts";
import { testOnSqlite } from "../harness/engine.ts";
import { postgresUrl } from "../harness/postgres-database.ts";
import { CHARTROOM, runProgram, terminalEnvironment, testWith } from "../harness/program.ts";
import {
  type ReachableServer,
  runCommand,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

/** A start that must fail: what it said, which is sentences and no stack. */
async function complaint(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const run = await runHostedCommand(["serve", "--port", "0", ...args], env);
  expect([run.code, run.stdout]).toEqual([1, ""]);
  expect(run.stderr).toMatch(/^chartroom: /);
  expect(run.stderr).not.toMatch(/\n\s+at /);
  return run.stderr;
}

describe("the help", () => {
  test("names every setting with its flag, its variable and its default", async () => {
    for (const run of await Promise.all([runCommand(["--help"]), runCommand(["serve", "--help"])])) {
      expect(run.code).toBe(0);
      const text = run.stdout.replaceAll(/\s+/g, " ");
      for (const { flag, argument, env, default: preset } of Object.values(SETTINGS)) {
        // Behind a blank, since one flag may begin another; with its argument, since the help of another may name it.
        const begin = text.indexOf(argument ? `${flag} <${argument}>` : `${flag} `);
        const entry = text.slice(begin, begin + 250);
        expect([flag, entry.includes(env), entry.includes(preset)]).toEqual([flag, true, true]);
      }
    }
  });

  test("names the commands and what they do", async () => {
    const [{ stdout }, { stdout: token }] = await Promise.all([
      runCommand(["--help"]),
      runCommand(["token", "create", "--help"]),
    ]);
    expect(stdout).toMatch(/serve .*start the server/);
    for (const option of ["--user", "--description", "--days", "--read-only", "--data-dir"]) {
      expect(token).toContain(option);
    }
  });

  test("is not what a wrong call gets", async () => {
    const calls = [["frob"], ["serve", "--frob"], ["serve", "now"], ["token", "create", "--days", "91"]];
    for (const { code, stdout, stderr } of await Promise.all(calls.map((call) => runCommand(call)))) {
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(/^error: .*\nRun with --help for usage\.\n$/s);
    }
  });
});

describe("a start", () => {
  test("with wrong settings names every problem, and makes nothing", async () => {
    const dataDir = join(temporaryFolder(), "data");
    const said = await complaint(
      ["--data-dir", dataDir, "--port", "x", "--log-level", "loud", "--tls-cert", "cert.pem"],
      {
        CHARTROOM_COUNT_LIMIT: "0",
        CHARTROOM_BASE_URL: "ftp://example.org",
        CHARTROOM_CORS_ORIGINS: "https://a.example.org/,*",
        CHARTROOM_ALLOW_UNKNOWN_FIELDS: "maybe",
        CHARTROOM_PROT: "8080",
      },
    );
    const problems = said
      .split("\n")
      .slice(1, -1)
      .map((line) => line.trim().split(" ")[0]);
    expect(problems.toSorted()).toEqual(
      [
        "--port",
        "--log-level",
        "CHARTROOM_COUNT_LIMIT",
        "CHARTROOM_BASE_URL",
        "CHARTROOM_CORS_ORIGINS",
        "CHARTROOM_ALLOW_UNKNOWN_FIELDS",
        "CHARTROOM_PROT",
        "--tls-cert",
      ].toSorted(),
    );
    expect(existsSync(dataDir)).toBe(false);
  });

  test("prefers a flag to its variable", async () => {
    const said = await complaint(["--log-level", "loud"], { CHARTROOM_LOG_LEVEL: "info" });
    expect(said).toContain('--log-level must be one of debug, info, warn, error, silent, not "loud"');
  });

  test("on a port in use, or an address that is not of this machine, says so", async () => {
    const [port, host] = await Promise.all([
      complaint(["--data-dir", temporaryFolder(), "--port", String(server.port)]),
      complaint(["--data-dir", temporaryFolder(), "--host", "203.0.113.7", "--base-url", "http://x"]),
    ]);
    expect(port).toContain(`--port ${server.port} is in use on 127.0.0.1`);
    expect(host).toContain("--host 203.0.113.7 is no address of this machine");
  });

  testOnSqlite("servers share a database")(
    "on the folder of a running server says so, and disturbs nothing",
    async () => {
      expect(await complaint(["--data-dir", server.dataDir])).toContain(
        `another server already uses the data folder ${server.dataDir}`,
      );
      expect((await post(server, "ProjectService/ListProjects")).status).toBe(200);
    },
  );

  test("with another key file than the data were written with says so, and changes neither", async () => {
    const old = await startHostedServer();
    await old.stop();
    const keyFile = join(temporaryFolder(), "other-key.json");
    const said = await complaint(["--data-dir", old.dataDir, "--key-file", keyFile]);
    expect(said).toContain(`the key file ${keyFile} is not the one`);
    const again = await startHostedServer({ dataDir: old.dataDir });
    expect((await post(again, "ProjectService/ListProjects", {}, old.token)).status).toBe(200);
    await again.stop();
  });

  test("with a key file that holds no key says so", async () => {
    const startWith = (content: string) => {
      const dataDir = temporaryFolder();
      writeFileSync(join(dataDir, "key.json"), content);
      return complaint(["--data-dir", dataDir]);
    };
    const said = await Promise.all([startWith("no JSON, but secret"), startWith('{"secret":"c2hvcnQ="}')]);
    expect(said[0]).toMatch(/key\.json cannot be read: it is no JSON\n$/);
    expect(said[1]).toMatch(/key\.json holds no key of 32 bytes\n$/);
  });

  test("on a folder that cannot be used says so", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "file"), "a file");
    const said = await complaint(["--data-dir", join(folder, "file", "data")]);
    expect(said).toContain("cannot be used: it, or a part of its path, is a file");
  });

  testOnSqlite("it is about the file")("on a file that is no database says so", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "chartroom.db"), "this is no database, whatever its name says");
    expect(await complaint(["--data-dir", folder])).toContain("cannot be used: file is not a database");
  });

  test("on a full disk says what to do", () => {
    const full = Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
    const open = () => {
      throw full;
    };
    expect(() => openOrThrow({ dataDir: "./data" }, open)).toThrow(
      "the data folder ./data cannot be used: the disk is full: make room there, or use another disk",
    );
  });

  test("with unusable files for TLS names each of them", async () => {
    const dataDir = join(temporaryFolder(), "data");
    const absent = ["--tls-cert", "/nowhere/cert.pem", "--tls-key", "/nowhere/key.pem"];
    const wrong = ["--tls-cert", "package.json", "--tls-key", "package.json"];
    const said = await Promise.all(
      [absent, wrong].map((each) => complaint(["--data-dir", dataDir, ...each])),
    );
    expect(said[0]).toContain("--tls-cert /nowhere/cert.pem cannot be read");
    expect(said[0]).toContain("--tls-key /nowhere/key.pem cannot be read");
    expect(said[1]).toContain("--tls-cert package.json is no PEM file");
    expect(said[1]).toContain("--tls-key package.json is no PEM file");
    expect(existsSync(dataDir)).toBe(false);
  });
});

describe("token create", () => {
  const create = (...args: string[]) =>
    runHostedCommand(["token", "create", "--data-dir", server.dataDir, ...args]);

  test("next to a running server prints a token that is good at once", async () => {
    const options = ["--description", "made next to the server", "--days", "1"];
    const { code, stdout } = await runCommand([
      ...["token", "create", "--data-dir", server.dataDir],
      ...options,
    ]);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^cr_pat_\w+\n$/)]);
    const token = stdout.trim();
    expect((await post(server, "ProjectService/ListProjects", {}, token)).status).toBe(200);
    const { body } = await post(server, "UserService/ListPersonalAccessTokens");
    const made = body.personalAccessTokens.at(-1);
    expect(made.description).toBe("made next to the server");
    expect(Date.parse(made.expiresAt) - Date.parse(made.createdAt)).toBe(24 * 3600 * 1000);
  });

  test("makes read-only tokens", async () => {
    const token = (await create("--read-only")).stdout.trim();
    expect((await post(server, "ProjectService/ListProjects", {}, token)).status).toBe(200);
    expect((await post(server, "RunnerService/CreateRunner", { name: "Rex" }, token)).status).toBe(403);
  });

  test("takes a user by email and knows no others", async () => {
    const [known, unknown] = await Promise.all([
      create("--user", "admin@localhost"),
      create("--user", "nobody@localhost"),
    ]);
    expect(known.code).toBe(0);
    expect([unknown.code, unknown.stdout]).toEqual([1, ""]);
    expect(unknown.stderr).toBe("chartroom: no user has the id or email nobody@localhost\n");
  });

  test("makes no installation of a mistyped folder", async () => {
    const folder = temporaryFolder();
    const run = await runHostedCommand(["token", "create", "--data-dir", join(folder, "dta")]);
    const missing =
      postgresUrl() === undefined ? "with --data-dir, or start it once" : "there is no key file";
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(missing)]);
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe("at a terminal", () => {
  const ID = /^[\da-f]{8}-[\da-f-]{27}$/m;
  const atTerminal = async (columns: number, command: string) => {
    const script = `stty cols ${columns} && ${CHARTROOM} ${command}`;
    const env = { ...terminalEnvironment(), ...dataEnvironmentOf(server.dataDir), TERM: "dumb" };
    const { code, stdout, stderr } = await runProgram("script", ["-qec", script, "/dev/null"], { env });
    expect([code, stderr]).toEqual([0, ""]);
    return stdout.replaceAll("\r", "").trimEnd().split("\n");
  };
  const widest = (lines: readonly string[]) => Math.max(...lines.map((line) => line.length));

  testWith("script")("help and tables fit a narrow one", async () => {
    for (const command of ["--help", "serve --help", "run list --help"]) {
      const lines = await atTerminal(40, command);
      // Words that are longer than a line, such as addresses, are never broken.
      const broken = lines.filter((line) => line.length > 40 && line.trim().includes(" "));
      expect([command, broken.filter((line) => !/^ {2}-/.test(line))]).toEqual([command, []]);
    }
    const lines = await atTerminal(40, `token list --data-dir '${server.dataDir}'`);
    expect(lines.join("\n")).toMatch(ID);
    expect(widest(lines)).toBeLessThanOrEqual(40);
  });

  testWith("script")(
    "help is no wider than people read, and a table is whole where there is room",
    async () => {
      expect(widest(await atTerminal(200, "--help"))).toBeLessThanOrEqual(120);
      const [headings = "", row = ""] = await atTerminal(200, `token list --data-dir '${server.dataDir}'`);
      expect(row.slice(0, 36)).toMatch(ID);
      expect(headings).toMatch(/^\w+ {2,}\w+/);
      expect(row).not.toContain("…");
    },
  );

  testWith("script")("what goes into a pipe is whole", async () => {
    const list = `token list --data-dir '${server.dataDir}'`;
    const [piped, { stdout }] = await Promise.all([
      atTerminal(40, `${list} | cat`),
      runCommand(["token", "list", "--data-dir", server.dataDir], { COLUMNS: "40" }),
    ]);
    expect(piped.join("\n")).toBe(stdout.trimEnd());
    expect(widest(piped)).toBeGreaterThan(60);
  });
});
