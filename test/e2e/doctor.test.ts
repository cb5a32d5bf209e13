import { spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { openData } from "../../src/commands/open-data.ts";
import { post } from "../harness/call.ts";
import { dataConfigOf } from "../harness/data-config.ts";
import { testOnSqlite } from "../harness/engine.ts";
import { type FakeRunner, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { UNPRIVILEGED } from "../harness/postgres-cluster.ts";
import { ROOT } from "../harness/program.ts";
import { tampering } from "../harness/raw-data.ts";
import { startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import {
  runCommand,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";

/** The data of a server that has stopped while work waited for a runner that is connected. */
let sound: string;
beforeAll(async () => {
  const server = await startHostedServer();
  sound = server.dataDir;
  const runner = await startRegisteredHostedRunner(server);
  await runner.stop();
  await startExecution(server, { steps: [task("true")] });
  await server.stop();
  await tampering(sound, (raw) => raw.run(`update runner set seen_at = ${Date.now()}`));
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

const diagnose = async (dataDir: string, args: readonly string[] = []) => {
  // Another program of this machine may listen at the default port.
  const shared = ["--data-dir", dataDir, "--port", "0"];
  const { code, stdout, stderr } = await runHostedCommand(["doctor", ...shared, ...args]);
  expect(stderr).toBe("");
  const lines = stdout.trim().split("\n");
  return { code, stdout, wrong: lines.filter((line) => line.startsWith("wrong")), sum: lines.at(-1) };
};

const settings = (text: string) => `wrong  settings     ${text}`;

describe("the doctor", () => {
  test("finds nothing wrong with what is sound, and names all that it looked at", async () => {
    const { code, stdout, sum } = await diagnose(sound);
    expect([code, sum]).toEqual([0, "nothing is wrong"]);
    for (const subject of [
      "settings",
      "data folder",
      "disk",
      "keys",
      "database",
      "clock",
      "runners",
      "isolation",
    ])
      expect(stdout).toMatch(new RegExp(`^ok +${subject} `, "m"));
  });

  test("disturbs no server that runs, and recognizes it at its port", async () => {
    const server = await startHostedServer();
    const { code, stdout } = await diagnose(server.dataDir, ["--port", String(server.port)]);
    expect(code).toBe(0);
    expect(stdout).toContain(
      `ok     address      a Chartroom server listens at port ${server.port} of 127.0.0.1\n`,
    );
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
  });

  testOnSqlite("servers on PostgreSQL do not lock their data folder")(
    "tells that the server at the port uses another data folder",
    async () => {
      const server = await startHostedServer();
      const { code, wrong } = await diagnose(sound, ["--port", String(server.port)]);
      const line = `wrong  address      a Chartroom server listens at port ${server.port} of 127.0.0.1, but none uses this data folder`;
      expect([code, wrong]).toEqual([1, [line]]);
    },
  );

  test("tells that another program listens at the server's port", async () => {
    const other = createServer((_request, response) => response.end("Hello")).listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const { code, wrong } = await diagnose(sound, ["--port", String(port)]);
    other.close();
    const line = `wrong  address      --port ${port} is in use on 127.0.0.1; stop what uses it or choose another`;
    expect([code, wrong]).toEqual([1, [line]]);
  });

  test("tells that the host is no address of this machine", async () => {
    const args = ["--host", "192.0.2.1", "--base-url", "https://chartroom.example.org", "--port", "18443"];
    const { code, wrong } = await diagnose(sound, args);
    expect([code, wrong]).toEqual([
      1,
      ["wrong  address      --host 192.0.2.1 is no address of this machine"],
    ]);
  });

  test("tells what the server's own runner lacks, without which a server creates nothing", async () => {
    const hosts = join(temporaryFolder(), "hosts");
    writeFileSync(hosts, "nothing\n");
    const args = ["--local-runner", "--isolation", "none", "--egress-hosts", hosts];
    const { code, wrong } = await diagnose(sound, args);
    expect([code, wrong]).toEqual([
      1,
      [expect.stringContaining(`wrong  local runner --egress-hosts ${hosts}, line 1: `)],
    ]);
    const path = temporaryFolder();
    const { stdout } = await runCommand(["doctor", "--data-dir", sound, "--port", "0", "--local-runner"], {
      PATH: path,
    });
    expect(stdout).toContain("wrong  local runner git 2.37 or newer is needed in PATH: install it\n");
    const dataDir = join(temporaryFolder(), "data");
    await expect(startHostedServer({ dataDir, args })).rejects.toThrow("line 1: ");
    expect((await startHostedServer({ dataDir })).token).not.toBe("");
  });

  test("tells of runners and of webhooks that are paused", async () => {
    const server = await startHostedServer();
    const call = (operation: string, body: object) => succeeded(post(server, operation, body));
    const lineOf = async (subject: string) => {
      const { stdout } = await diagnose(server.dataDir);
      return stdout.split("\n").find((line) => line.includes(` ${subject} `));
    };
    const [one, two] = [await registerRunner(server), await registerRunner(server)];
    expect(await lineOf("runners")).toMatch(/^ok +runners +2 connected, 0 disconnected$/);
    expect(await lineOf("webhooks")).toBeUndefined();
    const pause = ({ runnerId }: FakeRunner) =>
      call("RunnerService/UpdateRunner", { runnerId, spec: { desiredPhase: "RUNNER_PHASE_INACTIVE" } });
    await pause(one);
    expect(await lineOf("runners")).toMatch(/^ok +runners +1 connected, 1 paused, 0 disconnected$/);
    await pause(two);
    expect(await lineOf("runners")).toMatch(/^note +runners +all that are connected are paused/);
    const { eventSubscription } = await call("EventSubscriptionService/CreateEventSubscription", {
      ...{ name: "Chat", url: "https://hooks.example.org/a", eventKinds: ["approval.asked"] },
    });
    expect(await lineOf("webhooks")).toMatch(/^ok +webhooks +1 active; 0 events wait$/);
    const request = { eventSubscriptionId: eventSubscription.id, paused: true };
    await call("EventSubscriptionService/UpdateEventSubscription", request);
    expect(await lineOf("webhooks")).toMatch(/^note +webhooks +0 active, 1 paused; 0 events wait$/);
  });

  testOnSqlite("it changes the file of the database")(
    "notes an export of the audit trail that is behind, of which /readyz warns",
    async () => {
      const dataDir = temporaryFolder();
      cpSync(sound, dataDir, { recursive: true });
      await tampering(dataDir, (raw) => raw.run(`update audit_log set at = at - 600000`));
      const args = ["--audit-otlp-endpoint", "http://127.0.0.1:1"];
      const behind = "the target otlp of the audit export has left a row unconfirmed for 1\\d minutes";
      const { code, stdout } = await diagnose(dataDir, args);
      expect([code, stdout.match(/^note +audit export +(.*)/m)?.[1]]).toEqual([
        0,
        expect.stringMatching(`^${behind} \\(rows in all: \\d+\\)$`),
      ]);
      // Anyone who reaches the server reads it: how much is done on it is nobody's business.
      const server = await startHostedServer({ dataDir, args });
      const ready = await fetch(`${server.url}/readyz`);
      expect([ready.status, await ready.json()]).toEqual([
        200,
        { status: "ok", warnings: [{ check: "audit export", reason: expect.stringMatching(`^${behind}$`) }] },
      ]);
    },
  );

  test("names each setting that cannot be used, and says that it looked no further", async () => {
    const { code, stdout, wrong } = await diagnose(sound, ["--port", "x", "--base-url", "y"]);
    expect([code, wrong]).toEqual([
      1,
      [
        settings('--port must be a whole number from 0 to 65535, not "x"'),
        settings('--base-url must be an http or https URL without query, fragment or user, not "y"'),
      ],
    ]);
    expect(stdout).toContain("nothing else was looked at");
  });

  test("tells that nothing keeps in the work of the server's runner", async () => {
    const { code, stdout } = await diagnose(sound, ["--local-runner", "--isolation", "none"]);
    expect(code).toBe(0);
    expect(stdout).toContain("note   isolation    the work of the server's own runner is not isolated\n");
  });

  test("tells that work would see the headers for collectors", async () => {
    const readable = temporaryFolder();
    const file = join(readable, "headers");
    writeFileSync(file, "authorization: Bearer x\n", { mode: 0o600 });
    const args = ["--local-runner", "--isolation", "auto", "--otlp-headers-file", file];
    const { code, wrong } = await diagnose(sound, [...args, "--isolation-read", readable]);
    expect([code, wrong]).toEqual([
      1,
      [expect.stringContaining(`--isolation-read names ${readable}, where work would see ${file}`)],
    ]);
  });

  test("is a command of the program", async () => {
    const { code, stdout } = await runCommand(["doctor", "--data-dir", join(temporaryFolder(), "none")]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/\d things? (is|are) wrong\n$/);
  });
});

interface Breakage {
  /** Completes "a folder". */
  readonly name: string;
  readonly damage: (folder: string) => unknown;
  readonly args?: readonly string[];
  /** The line of the one thing that is wrong, and the advice below it. */
  readonly wrong: (folder: string) => string;
  readonly advice: RegExp;
}

const DATABASE = "chartroom.db";
const LARGEST_FLOOR = "1073741824";
const otherKey = JSON.stringify({ version: 2, secrets: [Buffer.alloc(32, 7).toString("base64")] });
const everyKey = (folder: string) => readFileSync(join(folder, "key.json"), "utf8");
/** Overwrites all pages of the file but the first two. */
const scribble = (folder: string) => {
  const bytes = readFileSync(join(folder, DATABASE));
  writeFileSync(join(folder, DATABASE), bytes.fill(0xff, 2 * 4096));
};

const BREAKAGES: readonly Breakage[] = [
  {
    name: "that is not there",
    damage: (folder) => rmSync(folder, { recursive: true }),
    wrong: (folder) => `data folder  there is no ${folder}`,
    advice: /--data-dir, or mount its disk/,
  },
  {
    name: "that is a file",
    damage: (folder) => {
      rmSync(folder, { recursive: true });
      writeFileSync(folder, "");
    },
    wrong: (folder) => `data folder  ${folder} is a file`,
    advice: /--data-dir/,
  },
  {
    name: "that is a link to a disk that is not mounted",
    damage: (folder) => {
      rmSync(folder, { recursive: true });
      symlinkSync(`${folder}-elsewhere`, folder);
    },
    wrong: (folder) => `data folder  ${folder} is a link to ${folder}-elsewhere, which is not there`,
    advice: /mount its disk/,
  },
  {
    name: "that is empty",
    damage: (folder) => {
      rmSync(folder, { recursive: true });
      mkdirSync(folder, { mode: 0o700 });
    },
    wrong: (folder) => `data folder  ${folder} is empty`,
    advice: /mount its disk; for a new installation start the server/,
  },
  {
    name: "with folders in the place of files",
    damage: (folder) => {
      for (const name of [DATABASE, "server.lock"]) {
        rmSync(join(folder, name), { force: true });
        mkdirSync(join(folder, name));
      }
    },
    wrong: (folder) => `data folder  chartroom.db and server.lock in ${folder} are no files`,
    advice: /move it away/,
  },
  {
    name: "without a database",
    damage: (folder) => rmSync(join(folder, DATABASE)),
    wrong: (folder) => `database     there is no chartroom.db in ${folder}`,
    advice: /restore a backup/,
  },
  {
    name: "whose database is something else",
    damage: (folder) => writeFileSync(join(folder, DATABASE), "Dear diary, ".repeat(1000)),
    wrong: (folder) =>
      `database     ${join(folder, DATABASE)}: the database file is damaged: restore a backup`,
    advice: /stop the server, keep a copy/,
  },
  {
    name: "whose database has lost pages",
    damage: scribble,
    wrong: (folder) => `database     ${join(folder, DATABASE)}: `,
    advice: /restore a backup/,
  },
  {
    name: "whose database is empty",
    damage: (folder) => truncateSync(join(folder, DATABASE)),
    wrong: (folder) => `database     ${join(folder, DATABASE)}: it is no database of Chartroom`,
    advice: /restore a backup/,
  },
  {
    name: "of a newer release",
    damage: (folder) => tampering(folder, (raw) => raw.run("update installation set feature_level = 99")),
    wrong: () => "database     the data has the feature level 99, and this release knows ",
    advice: /start that release instead/,
  },
  {
    name: "of an earlier release",
    damage: (folder) =>
      tampering(folder, (raw) =>
        raw.run("delete from migration where position = (select max(position) from migration)"),
      ),
    wrong: (folder) =>
      `database     the database in ${folder} is not of this release: start the server with it once`,
    advice: /start the server with it once/,
  },
  {
    name: "without its key file",
    damage: (folder) => rmSync(join(folder, "key.json")),
    wrong: (folder) => `keys         there is no key file ${join(folder, "key.json")}`,
    advice: /put back the key file/,
  },
  {
    name: "with half a key file",
    damage: (folder) => writeFileSync(join(folder, "key.json"), everyKey(folder).slice(0, 20)),
    wrong: (folder) => `keys         the key file ${join(folder, "key.json")} cannot be read: it is no JSON`,
    advice: /put back the key file/,
  },
  {
    name: "with the key file of another",
    damage: (folder) => writeFileSync(join(folder, "key.json"), otherKey),
    wrong: (folder) =>
      `keys         ${join(folder, "key.json")} is not the file that the data was written with: it lacks the key `,
    advice: /--key-file/,
  },
  {
    name: "whose key everybody reads",
    damage: (folder) => chmodSync(join(folder, "key.json"), 0o644),
    wrong: (folder) =>
      `keys         every user of this machine may read or write ${join(folder, "key.json")}`,
    advice: /chmod 600/,
  },
  {
    name: "on a disk with less room than the floor",
    damage: () => undefined,
    args: ["--disk-floor", LARGEST_FLOOR],
    wrong: () => "disk         the disk of the data folder has ",
    advice: /free some/,
  },
  {
    name: "whose records are of tomorrow",
    damage: (folder) => tampering(folder, (raw) => raw.run("update audit_log set at = at + 86400000")),
    wrong: () => "clock        the clock of this machine is ",
    advice: /NTP/,
  },
  {
    name: "whose work waits for a runner that is gone",
    damage: (folder) => tampering(folder, (raw) => raw.run("update runner set seen_at = null")),
    wrong: () => "runners      one piece of work waits, and no runner is connected",
    advice: /chartroom runner/,
  },
  {
    name: "whose work waits for runners that are paused",
    damage: (folder) => tampering(folder, (raw) => raw.run("update runner set available = 0")),
    wrong: () => "runners      one piece of work waits, and all runners that are connected are paused",
    advice: /UpdateRunner with RUNNER_PHASE_ACTIVE/,
  },
];

describe("a folder", () => {
  testOnSqlite("it is about the files of a data folder")(
    "whose log of changes is lost, with all that was not moved into the database yet, is noted",
    async () => {
      const folder = join(temporaryFolder(), "data");
      mkdirSync(folder, { mode: 0o700 });
      await (await openData(dataConfigOf(folder))).store.close();
      const { code, stdout } = await diagnose(folder);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^note +database +it is empty: .*\n +-> .*restore a backup/m);
    },
  );

  for (const { name, damage, args, wrong, advice } of BREAKAGES)
    testOnSqlite("it is about the files of a data folder")(`${name} is called that`, async () => {
      const folder = join(temporaryFolder(), "data");
      cpSync(sound, folder, { recursive: true });
      await damage(folder);
      const found = await diagnose(folder, args);
      expect([found.code, found.sum]).toEqual([1, "1 thing is wrong"]);
      expect(found.wrong[0]).toContain(`wrong  ${wrong(folder)}`);
      expect(found.stdout).toMatch(advice);
    });

  const asRoot = process.getuid?.() === 0 ? test : test.skip; // Nobody else may give files away.
  const program = join(ROOT, "bin/chartroom.js");
  const asNobody = (command: string, ...args: string[]) =>
    spawnSync(command, args, { encoding: "utf8", ...UNPRIVILEGED, cwd: "/" });
  const canBeNobody = process.getuid?.() === 0 && asNobody("test", "-r", program).status === 0;
  const asAnother = canBeNobody ? test : test.skip; // Only root starts programs of another user, who must be able to read this clone.
  asAnother("of another user is called that (needs root)", () => {
    const parent = temporaryFolder();
    const folder = join(parent, "data");
    cpSync(sound, folder, { recursive: true });
    const look = () => {
      const { status, stdout } = asNobody(
        process.execPath,
        program,
        "doctor",
        "--data-dir",
        folder,
        "--port",
        "0",
      );
      return [status, stdout.split("\n").filter((line) => line.startsWith("wrong"))];
    };
    chmodSync(parent, 0o755);
    expect(look()).toEqual([1, [`wrong  data folder  this user may not write ${folder}`]]);
    chmodSync(parent, 0o700);
    const cause = `this user may not look into the folder that ${folder} is in`;
    expect(look()).toEqual([1, [`wrong  data folder  ${cause}`]]);
  });

  asRoot("with a file of another user is called that (needs root)", async () => {
    const folder = join(temporaryFolder(), "data");
    cpSync(sound, folder, { recursive: true });
    // A copy of the folder has no database on PostgreSQL, which is only a loss if it has had a server.
    rmSync(join(folder, "server.url"), { force: true });
    writeFileSync(join(folder, "server.lock"), "");
    chownSync(join(folder, "server.lock"), 64_913, 64_913);
    const found = await diagnose(folder);
    expect(found.code).toBe(1);
    expect(found.wrong).toEqual([
      `wrong  data folder  server.lock in ${folder} belongs to another user than the folder`,
    ]);
  });
});
