import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { AUDIT_FLOOR_ROWS } from "../../src/domain/record/audit-ageing.ts";
import { exportAudit } from "../../src/jobs/audit-export.ts";
import { AuditFile } from "../../src/sinks/audit-file.ts";
import { dropData } from "../harness/data-config.ts";
import { tampering } from "../harness/raw-data.ts";
import { runHostedCommand, stopAll, temporaryFolder } from "../harness/server.ts";
import { START_MS } from "../harness/test-store.ts";
import { openOldTrail } from "../services/record/old-trail.ts";

/** Number of rows that go. */
const GONE = 200;

let dataDir: string;
let organization: string;
/** The file to which the trail was exported before any row went. */
let grown: string;

const run = (...args: string[]) => runHostedCommand([...args, "--data-dir", dataDir]);
const age = (...more: string[]) =>
  run("retention", "--audit-retention", "365", "--audit-file", grown, ...more);

beforeAll(async () => {
  const trail = await openOldTrail();
  ({ dataDir } = trail.made);
  organization = trail.harbour.organizationId;
  await trail.fill(trail.harbour, AUDIT_FLOOR_ROWS + GONE);
  grown = join(temporaryFolder(), "audit.jsonl");
  const file = new AuditFile(
    { path: grown, bytes: 1_000_000_000, count: 0 },
    { now: () => START_MS, isShared: false },
  );
  await exportAudit(trail.made.store, trail.made.keys, file);
  await file.close();
  await trail.made.store.close();
  const secrets = [Buffer.alloc(32, 7).toString("base64")];
  writeFileSync(join(dataDir, "key.json"), JSON.stringify({ version: 2, secrets }), { mode: 0o600 });
});
afterAll(async () => {
  await stopAll();
  rmSync(dataDir, { recursive: true });
  await dropData(dataDir);
});

const anchored = new RegExp(
  `^organization [0-9a-f-]{36}: ${AUDIT_FLOOR_ROWS + 1} rows, ${AUDIT_FLOOR_ROWS + 1} hold; the rows up to ${GONE} with the hash [0-9a-f]{64} were removed by retention, anchored at .*Z with the key [0-9a-f]+; last hash [0-9a-f]{64}(; from row ${GONE + 1} on)?$`,
  "m",
);

async function verified(): Promise<string> {
  const { code, stdout } = await run("audit", "verify");
  expect([code, stdout]).toEqual([0, expect.stringMatching(/every chain holds\n$/)]);
  return stdout;
}

describe("chartroom retention with --audit-retention", () => {
  test("is refused under its floor, and where nothing has the rows", async () => {
    const low = await run("retention", "--audit-retention", "89", "--audit-file", grown);
    expect([low.code, low.stderr]).toEqual([
      1,
      expect.stringContaining("must be 0 (no limit) or from 90 to"),
    ]);
    const alone = await run("retention", "--audit-retention", "90", "--dry-run");
    expect(alone.stderr).toContain("--audit-retention needs --audit-file or --audit-otlp-endpoint");
  });

  test("says before what goes, and removes it once", async () => {
    const name = `harbour (${organization}): `;
    const preview = await age("--dry-run");
    expect(preview.stdout).toMatch(/^harbour \([0-9a-f-]{36}\): 200 rows of the audit trail, \d+ bytes$/m);
    expect(await verified()).not.toContain("were removed by retention");
    expect((await age()).stdout).toContain(`${name}removed ${GONE} rows of the audit trail\n`);
    expect((await age()).stdout).not.toContain("audit trail");
    expect(await verified()).toMatch(anchored);
  });

  test("leaves exports whole, from before and from now on", async () => {
    const now = join(temporaryFolder(), "now.jsonl");
    writeFileSync(now, (await run("audit", "export")).stdout);
    for (const [file, said] of [
      [grown, /nothing is missing/],
      [now, anchored],
    ] as const) {
      const { code, stdout } = await run("audit", "check", file);
      expect([code, stdout]).toEqual([0, expect.stringMatching(said)]);
    }
  });

  test("leaves an anchor that is said to be forged where it names another time, also one that no date has", async () => {
    const move = (by: string) =>
      tampering(dataDir, (raw) => raw.run(`update audit_anchor set at = at ${by} 9000000000000000`));
    await move("+");
    const { code, stdout } = await run("audit", "verify");
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining("its anchor was changed: it does not match its seal"),
    ]);
    await move("-");
    await verified();
  });

  test("leaves an anchor that a rotation of keys, a backup and its restoration keep", async () => {
    expect((await run("keys", "rotate")).code).toBe(0);
    expect(await verified()).toMatch(anchored);
    const backup = join(temporaryFolder(), "copy.db");
    expect((await run("backup", backup)).code).toBe(0);
    const folder = join(temporaryFolder(), "restored");
    const restored = await runHostedCommand(["restore", backup, "--data-dir", folder]);
    expect([restored.code, restored.stderr]).toEqual([0, ""]);
    mkdirSync(folder, { recursive: true });
    copyFileSync(join(dataDir, "key.json"), join(folder, "key.json"));
    const { stdout } = await runHostedCommand(["audit", "verify", "--data-dir", folder]);
    expect(stdout).toBe(await verified());
  });

  test("leaves nothing of an organization that is removed", async () => {
    const removed = await run("organization", "remove", organization, "--yes", "--force");
    expect([removed.code, removed.stderr]).toEqual([0, ""]);
    const text = await verified();
    expect(text).not.toContain("were removed by retention");
    expect(text).toMatch(new RegExp(`^organization ${organization}: removed at `, "m"));
  });
});
