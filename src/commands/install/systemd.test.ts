import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { runProgram, testWith } from "../../../test/harness/program.ts";
import { installSystemd } from "./systemd.ts";
import { UNITS_FOLDER, type UnitSettings } from "./units.ts";

const SETTINGS: UnitSettings = {
  node: process.execPath,
  program: join(import.meta.dirname, "../../.."),
  credentials: {
    keyFile: "/etc/chartroom/key.json",
    databasePasswordFile: "/etc/chartroom/database-password",
    exchangeTokenFile: "/etc/chartroom/exchange-token",
  },
  server: "https://chartroom.example.org",
};
const CHOICE = { print: false, remove: false, force: false };
const newRoot = () => mkdtempSync(join(tmpdir(), "chartroom-install-"));
const unitOf = (root: string, name: string) => readFileSync(join(root, UNITS_FOLDER, name), "utf8");
const filesIn = (root: string) =>
  readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => statSync(join(root, path)).isFile())
    .sort();
const FILES = [
  "etc/chartroom/runner.env",
  "etc/chartroom/server.env",
  "etc/systemd/system/chartroom-backup.service",
  "etc/systemd/system/chartroom-runner.service",
  "etc/systemd/system/chartroom.service",
  "etc/sysusers.d/chartroom.conf",
];

describe("the units", () => {
  test("are written with files for the settings, which only root and their group read", () => {
    const root = newRoot();
    const text = installSystemd(SETTINGS, { ...CHOICE, root });
    expect(filesIn(root)).toEqual(FILES);
    for (const file of FILES) expect(text).toContain(`wrote    ${join(root, file)}`);
    expect(statSync(join(root, "etc/chartroom/server.env")).mode & 0o777).toBe(0o640);
    expect(text).toContain("systemctl enable --now chartroom\n");
  });

  test("hand files of root to the services, and name each in a setting", () => {
    const root = newRoot();
    installSystemd(SETTINGS, { ...CHOICE, root });
    for (const [unit, lines] of [
      ["chartroom.service", "key.json:/etc/chartroom/key.json\nEnvironment=CHARTROOM_KEY_FILE=%d/key.json\n"],
      [
        "chartroom.service",
        "database-password:/etc/chartroom/database-password\nEnvironment=CHARTROOM_DATABASE_PASSWORD_FILE=%d/database-password\n",
      ],
      [
        "chartroom-runner.service",
        "exchange-token:/etc/chartroom/exchange-token\nEnvironment=CHARTROOM_EXCHANGE_TOKEN_FILE=%d/exchange-token\n",
      ],
    ] as const)
      expect(unitOf(root, unit)).toContain(`LoadCredential=${lines}`);
  });

  test("reload by the signal, without a program that a small system lacks", () => {
    const root = newRoot();
    installSystemd(SETTINGS, { ...CHOICE, root });
    for (const name of ["chartroom.service", "chartroom-runner.service"]) {
      // Debian has /bin/kill in a separate package, procps.
      expect(unitOf(root, name)).toContain(`ExecReload=/bin/sh -c "kill -HUP \${MAINPID}"\n`);
    }
  });

  test("name nothing that is not to be handed over", () => {
    const root = newRoot();
    const credentials = { keyFile: "", databasePasswordFile: "", exchangeTokenFile: "" };
    installSystemd({ ...SETTINGS, credentials }, { ...CHOICE, root });
    expect(unitOf(root, "chartroom.service") + unitOf(root, "chartroom-runner.service")).not.toContain(
      "LoadCredential",
    );
  });

  test("copy the data with the server's keys, to a folder and at times that its settings name", () => {
    const root = newRoot();
    installSystemd(SETTINGS, { ...CHOICE, root });
    const unit = unitOf(root, "chartroom-backup.service");
    expect(unit).toContain("LoadCredential=key.json:/etc/chartroom/key.json\n");
    // The braces make each one a single argument.
    expect(unit).toContain(
      `backup \${CHARTROOM_BACKUP_FOLDER} --schedule \${BACKUP_SCHEDULE} --keep \${BACKUP_KEEP} --keep-days \${BACKUP_KEEP_DAYS}\n`,
    );
    expect(unit).toContain('Environment="BACKUP_SCHEDULE=17 3 * * *" BACKUP_KEEP=14 BACKUP_KEEP_DAYS=0\n');
  });

  test("quote what systemd would read in another way", () => {
    const root = newRoot();
    installSystemd({ ...SETTINGS, program: '/opt/a b%c$d"e' }, { ...CHOICE, root });
    expect(unitOf(root, "chartroom-runner.service")).toContain(
      `${process.execPath} "/opt/a b%%c$$d\\"e/bin/chartroom.js" runner\n`,
    );
  });

  test.each([
    ["node", { ...SETTINGS, node: "node" }],
    ["program", { ...SETTINGS, program: "/opt/a\nExecStart=/bin/sh" }],
    ["server", { ...SETTINGS, server: "https://a\nCHARTROOM_ISOLATION=none" }],
    ["credential", { ...SETTINGS, credentials: { ...SETTINGS.credentials, keyFile: "/etc/a:b" } }],
  ])("refuse a %s that would say something else there", (_, settings) => {
    const root = newRoot();
    expect(() => installSystemd(settings, { ...CHOICE, root })).toThrow(/must be/);
    expect(filesIn(root)).toEqual([]);
  });

  test("are printed without a file being written", () => {
    const root = newRoot();
    const text = installSystemd(SETTINGS, { ...CHOICE, root, print: true });
    for (const file of FILES) expect(text).toContain(`# /${file}\n`);
    expect(filesIn(root)).toEqual([]);
  });
});

describe("a second installation", () => {
  test("keeps what the operator has set, and changes nothing else", () => {
    const root = newRoot();
    installSystemd(SETTINGS, { ...CHOICE, root });
    const settings = join(root, "etc/chartroom/server.env");
    writeFileSync(settings, "CHARTROOM_PORT=9000\n");
    const text = installSystemd(SETTINGS, { ...CHOICE, root, force: true });
    expect(text.match(/^kept /gm)).toHaveLength(FILES.length);
    expect(readFileSync(settings, "utf8")).toBe("CHARTROOM_PORT=9000\n");
  });

  test("replaces a changed unit only when asked to, and otherwise nothing at all", () => {
    const root = newRoot();
    installSystemd(SETTINGS, { ...CHOICE, root });
    const unit = join(root, UNITS_FOLDER, "chartroom.service");
    writeFileSync(unit, "[Service]\n");
    const other = { ...SETTINGS, node: "/usr/bin/node" };
    expect(() => installSystemd(other, { ...CHOICE, root })).toThrow(/--force replaces them/);
    expect(unitOf(root, "chartroom-runner.service")).toContain(process.execPath);
    expect(installSystemd(other, { ...CHOICE, root, force: true })).toContain(`replaced ${unit}`);
    expect(unitOf(root, "chartroom.service")).toContain("ExecStart=/usr/bin/node ");
  });
});

describe("a removal", () => {
  test("leaves what was changed, and says so", () => {
    const root = newRoot();
    installSystemd(SETTINGS, { ...CHOICE, root });
    writeFileSync(join(root, "etc/chartroom/server.env"), "CHARTROOM_PORT=9000\n");
    const text = installSystemd(SETTINGS, { ...CHOICE, root, remove: true });
    expect(filesIn(root)).toEqual(["etc/chartroom/server.env"]);
    expect(text).toContain("left     ");
    installSystemd(SETTINGS, { ...CHOICE, root, remove: true, force: true });
    expect(filesIn(root)).toEqual([]);
    expect(installSystemd(SETTINGS, { ...CHOICE, root, remove: true })).toContain(
      "There was nothing to remove.",
    );
  });
});

describe("a folder that cannot be written", () => {
  test("is said with the way out", () => {
    const root = newRoot();
    mkdirSync(join(root, "etc"));
    writeFileSync(join(root, "etc/systemd"), "a file");
    expect(() => installSystemd(SETTINGS, { ...CHOICE, root })).toThrow(/etc\/systemd/);
  });
});

describe("systemd itself", () => {
  /** The maximum exposure, of 100: the runner's sandboxes need what a stricter unit would forbid. */
  const MOST = {
    "chartroom.service": 20,
    "chartroom-backup.service": 20,
    "chartroom-runner.service": 55,
  } as const;

  testWith("systemd-analyze")("finds no fault in the units, and little that they leave open", async () => {
    const root = newRoot();
    installSystemd(SETTINGS, { ...CHOICE, root });
    for (const [name, most] of Object.entries(MOST)) {
      const unit = join(root, UNITS_FOLDER, name);
      const verified = await runProgram("systemd-analyze", ["verify", "--man=no", unit]);
      expect([verified.code, verified.stderr]).toEqual([0, ""]);
      const args = ["security", "--offline=true", `--threshold=${most}`, unit];
      const { code, stdout, stderr } = await runProgram("systemd-analyze", args);
      expect([code, code === 0 ? "" : stdout + stderr]).toEqual([0, ""]);
    }
  });
});
