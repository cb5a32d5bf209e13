import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { KyselyPlugin } from "kysely";
import { AUDIT_FLOOR_ROWS, AUDIT_MIN_REMOVED_ROWS } from "../../../src/domain/record/audit-ageing.ts";
import { AUDIT_AGEING } from "../../../src/domain/record/audit-anchor.ts";
import type { AuditTarget, ExportLine } from "../../../src/domain/record/audit-export.ts";
import { createExportCheck } from "../../../src/domain/record/audit-export-check.ts";
import { ageAudit, previewAgeing } from "../../../src/jobs/retention/audit-ageing.ts";
import { keysFrom } from "../../../src/keys.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { recordRemoval } from "../../../src/store/record/audit-ageing.ts";
import { exportChains } from "../../../src/store/record/audit-chain.ts";
import { findAuditLag, findOwnAuditLag } from "../../../src/store/record/audit-lag.ts";
import { type Scope, type Store, SYSTEM, within } from "../../../src/store/store.ts";
import { tampering } from "../../harness/raw-data.ts";
import { openReadOnlyData } from "../../harness/read-only-data.ts";
import { START_MS } from "../../harness/test-store.ts";
import { OLD_MS, type OldTrail, openOldTrail } from "./old-trail.ts";

let trail: OldTrail;
let made: OldTrail["made"];

interface Options {
  readonly days?: number;
  readonly targets?: readonly AuditTarget[];
  readonly store?: Store;
}

/** Removes what is old; the rows of each organization, which a preview has shown before. */
async function age({ days = 365, targets = ["file"], store = made.store }: Options = {}) {
  const preview = await previewAgeing(store, { days, targets }, made.clock.now);
  const removed: Record<string, number> = {};
  await ageAudit(store, trail.mac, { days, targets }, made.clock.now, ({ name, rows }) => {
    removed[name] = rows;
  });
  for (const { bytes, rows } of preview) expect(bytes).toBeGreaterThan(100 * rows);
  expect(Object.fromEntries(preview.map(({ name, rows }) => [name, rows]))).toEqual(removed);
  return removed;
}

function checked(lines: readonly ExportLine[]): string[] {
  const check = createExportCheck(trail.mac);
  for (const line of lines) check.add(JSON.parse(JSON.stringify(line)));
  return check.end().flatMap(({ broken }) => (broken ? [`${broken.sequence}: ${broken.problem}`] : []));
}

async function exported(): Promise<ExportLine[]> {
  const lines: ExportLine[] = [];
  const copy = await openReadOnlyData(made.dataDir);
  for await (const line of exportChains(copy.reader, [])) lines.push(line);
  await copy.close();
  return lines;
}

/** A store that is killed after a number of its writes. */
function killedAfter(writes: number): Store {
  let left = writes;
  return {
    ...made.store,
    reader: made.store.reader,
    write(...args: Parameters<Store["write"]>) {
      if (left === 0) return Promise.reject(new Error("killed"));
      left -= 1;
      return made.store.write(...args);
    },
  } as Store;
}

beforeAll(async () => {
  trail = await openOldTrail();
  made = trail.made;
});
afterAll(() => made.close());

/** The tests go on from each other: a chain only grows. */
describe("rows of the trail", () => {
  const most = AUDIT_FLOOR_ROWS + AUDIT_MIN_REMOVED_ROWS;

  test("stay where there are no more than the floor, and as many as have to go at least", async () => {
    await trail.exportTo("file");
    made.clock.now = START_MS;
    expect(await age()).toEqual({});
    made.clock.now = OLD_MS + 1;
    await trail.fill(trail.harbour, most - 1);
    await trail.exportTo("file");
    made.clock.now = START_MS;
    expect(await age()).toEqual({});
    expect(await trail.anchorOf(trail.harbour)).toBeUndefined();
  });

  test("stay while the setting is off, nothing is exported, a target lacks them, or they are younger", async () => {
    made.clock.now = OLD_MS + 2;
    await trail.fill(trail.harbour, most);
    made.clock.now = START_MS;
    // What is confirmed ends right before the last one, which has to go too.
    expect(await age({ targets: [] })).toEqual({});
    expect(await age({ targets: ["otlp"] })).toEqual({});
    expect(await age({ targets: ["file", "otlp"] })).toEqual({});
    expect(await age({ days: 0 })).toEqual({});
    expect(await age({ days: 1_000 })).toEqual({});
    await trail.exportTo("file");
    expect(await age({ targets: ["file", "otlp"] })).toEqual({});
    expect(await trail.anchorOf(trail.harbour)).toBeUndefined();
  });

  test("stay where another hand than the export's wrote that a target has confirmed them", async () => {
    await tampering(made.dataDir, (raw) =>
      raw.run(`insert into audit_export (target, organization_id, sequence, chain_hash, key_id, hash)
        select 'otlp', organization_id, sequence, chain_hash, key_id, hash from audit_export`),
    );
    made.clock.now = OLD_MS + 2;
    await trail.add(trail.lighthouse, 1);
    made.clock.now = START_MS;
    const message = expect.stringContaining("is not sealed by a key of the server");
    await expect(age({ targets: ["file", "otlp"] })).rejects.toMatchObject({ errors: [{ message }] });
    expect(await trail.anchorOf(trail.harbour)).toBeUndefined();
    await tampering(made.dataDir, (raw) => raw.run("delete from audit_export where target = 'otlp'"));
    await trail.exportTo("file");
  });

  test("go where one more is there, as is recorded, and leave a chain that holds behind an anchor", async () => {
    const [first] = (await made.history(trail.harbour)).audit;
    const { audit } = await made.history(trail.harbour);
    expect(await age({ days: 999 })).toEqual({ harbour: AUDIT_MIN_REMOVED_ROWS });
    const after = (await made.history(trail.harbour)).audit;
    expect(after.slice(0, -1)).toEqual(audit.slice(AUDIT_MIN_REMOVED_ROWS));
    const last = audit[AUDIT_MIN_REMOVED_ROWS - 1];
    expect(after.at(-1)).toMatchObject({ operation: "job/audit-retention", actor_id: SYSTEM.id });
    expect(JSON.parse(after.at(-1)?.diff ?? "")).toEqual({
      removedTrail: [null, { sequence: last?.sequence, hash: Buffer.from(last?.hash ?? "").toString("hex") }],
    });
    expect(await trail.anchorOf(trail.harbour)).toMatchObject({
      sequence: last?.sequence,
      rows: last?.sequence,
    });
    expect(first?.sequence).toBe(1);
    expect(await trail.breaks()).toEqual([]);
    expect(await trail.anchorOf(trail.lighthouse)).toBeUndefined();
    // The record of it is one row more, and none goes for it.
    await trail.exportTo("file");
    expect(await age()).toEqual({});
  });

  test("are whole in the export from before on, and in one that begins behind the anchor", async () => {
    expect(checked(trail.taken.file)).toEqual([]);
    const lag = await findAuditLag(made.store.reader, "otlp");
    const own = (scope: Scope) => findOwnAuditLag(made.store.reader, scope, "otlp");
    const [ours, theirs] = [await own(trail.harbour), await own(trail.lighthouse)];
    // The rest is the installation's.
    expect([ours.rows > 0, theirs.rows > 0, ours.rows + theirs.rows < lag.rows]).toEqual([true, true, true]);
    expect([ours.target, Math.min(Number(ours.oldestAt), Number(theirs.oldestAt))]).toEqual(["otlp", OLD_MS]);
    // The rows behind the anchor, and the line that has it.
    expect(await trail.exportTo("otlp")).toBe(lag.rows + 1);
    expect(lag.oldestAt).toBe(OLD_MS);
    const whole = await exported();
    for (const lines of [trail.taken.otlp, whole]) {
      expect(checked(lines)).toEqual([]);
      const without = lines.filter(
        (line) => !("row" in line) || line.row.chain !== trail.harbour.organizationId,
      );
      expect(checked(without)).not.toEqual([]);
      const forged = lines.map((line) =>
        "anchors" in line && line.anchors
          ? { ...line, anchors: line.anchors.map((anchor) => ({ ...anchor, at: anchor.at + 1 })) }
          : line,
      );
      expect(checked(forged)).toEqual([
        expect.stringContaining("its anchor was changed: it does not match its seal"),
      ]);
    }
    const { audit } = await made.history(trail.harbour);
    const unsealed = whole.map((line) => ("after" in line ? { after: [] } : line));
    expect(checked(unsealed)).toEqual([
      `1: the rows from here to ${(audit[0]?.sequence ?? 0) - 1} are missing, and no anchor says that they were removed`,
    ]);
  });

  test("go on to go where that was cut short, each once and recorded once, also alongside another server", async () => {
    made.clock.now = OLD_MS + 3;
    await trail.add(trail.harbour, 700);
    await trail.exportTo("file");
    made.clock.now = START_MS;
    const before = await trail.anchorOf(trail.harbour);
    const head = await trail.headOf(trail.harbour);
    for (const [writes, recorded] of [
      [0, 0],
      [1, 1],
      [0, 1],
      [1, 1],
      [1, 1],
    ] as const) {
      const store = killedAfter(writes);
      const run = ageAudit(store, trail.mac, { days: 365, targets: ["file"] }, made.clock.now);
      await expect(run).rejects.toThrow("the audit trail of some organizations stays");
      expect(await trail.breaks()).toEqual([]);
      expect(await trail.headOf(trail.harbour)).toBe(head + recorded);
    }
    const cut = await trail.anchorOf(trail.harbour);
    expect(cut?.sequence).toBeGreaterThan(before?.sequence ?? 0);
    expect(cut?.sequence).toBeLessThan(cut?.until_sequence ?? 0);
    const keep = { days: 365, targets: ["file"] as const };
    await Promise.all([1, 2].map(() => ageAudit(made.store, trail.mac, keep, made.clock.now)));
    expect(await trail.headOf(trail.harbour)).toBe(head + 1);
    expect((await trail.anchorOf(trail.harbour))?.sequence).toBe(cut?.until_sequence);
    expect((await made.history(trail.harbour)).audit[0]?.sequence).toBe((cut?.until_sequence ?? 0) + 1);
    expect(await trail.breaks()).toEqual([]);
  });

  test("hold with a newer key before the older one, and not without that", async () => {
    const [other, own] = [new Uint8Array(32).fill(8), new Uint8Array(32).fill(7)];
    expect(await trail.breaks(keysFrom(other, own))).toEqual([]);
    expect(await trail.breaks(keysFrom(other))).toContainEqual(
      expect.stringContaining("its anchor was made with the key"),
    );
  });

  test("stay where a row was changed, and say so", async () => {
    made.clock.now = OLD_MS + 4;
    await trail.add(trail.lighthouse, most);
    await trail.exportTo("file");
    made.clock.now = START_MS;
    const change = (by: 1 | -1) =>
      tampering(made.dataDir, (raw) =>
        raw.run(
          `update audit_log set at = at + ${by} where organization_id = '${trail.lighthouse.organizationId}' and sequence = 2`,
        ),
      );
    await change(1);
    const run = age();
    await expect(run).rejects.toMatchObject({
      errors: [
        {
          message: expect.stringContaining(
            "breaks at row 2: it was changed: its content does not match its hash",
          ),
        },
      ],
    });
    await change(-1);
    // A store of SQLite reads what it has last committed itself.
    await trail.add(trail.lighthouse, 1);
    expect((await trail.anchorOf(trail.lighthouse))?.sequence).toBe(0);
    expect(await age()).toMatchObject({ lighthouse: expect.any(Number) });
    expect(await trail.breaks()).toEqual([]);
  });
});

test.each(["looks for the last of them", "has recorded that they go"])(
  "rows may go by another server while this one %s",
  async (moment) => {
    const { made, mac, harbour, ...own } = await openOldTrail();
    made.clock.now = OLD_MS + 1;
    await own.fill(harbour, AUDIT_FLOOR_ROWS + 3 * AUDIT_MIN_REMOVED_ROWS);
    await own.exportTo("file");
    made.clock.now = START_MS;
    const keep = { days: 365, targets: ["file"] as const };
    let others: Promise<void> | undefined;
    const byAnother = () => {
      others ??= ageAudit(made.store, mac, keep, made.clock.now);
      return others;
    };
    const reading: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        // A row of the chain, of which the time and the hash are read.
        if (Object.keys(result.rows[0] ?? {}).join() === "at,hash") await byAnother();
        return result;
      },
    };
    const { reader } = made.store;
    const store: Store = moment.startsWith("looks")
      ? { ...made.store, reader: builderOf(reader).withPlugin(reading) }
      : {
          ...made.store,
          async write(...args) {
            const written = await made.store.write(...args);
            await byAnother();
            return written;
          },
        };
    await ageAudit(store, mac, keep, made.clock.now);
    expect(others).toBeDefined();
    const anchor = await own.anchorOf(harbour);
    expect(anchor?.sequence).toBeGreaterThan(0);
    expect(anchor?.sequence).toBe(anchor?.until_sequence);
    expect(await own.breaks()).toEqual([]);
    await made.close();
  },
);

test("an anchor that was changed under its seal is not sealed as it is", async () => {
  const before = await trail.anchorOf(trail.harbour);
  const id = trail.harbour.organizationId;
  const change = (by: 1 | -1) =>
    tampering(made.dataDir, (raw) =>
      raw.run(`update audit_anchor set at = at + ${by} where organization_id = '${id}'`),
    );
  await change(1);
  const last = { sequence: 9_999, chain_hash: null };
  const recorded = await made.store.write(
    SYSTEM,
    AUDIT_AGEING,
    (tx) => recordRemoval(tx, trail.harbour, before, last),
    within(trail.harbour),
  );
  expect(recorded).toBeUndefined();
  await change(-1);
  expect(await trail.breaks()).toEqual([]);
});

test("no other write seals an anchor", async () => {
  const record = (operation: string) =>
    made.store.write(
      SYSTEM,
      operation,
      async (tx) => {
        const anchor = await trail.anchorOf(trail.harbour);
        await recordRemoval(tx, trail.harbour, anchor, { sequence: 9_999, chain_hash: null });
      },
      within(trail.harbour),
    );
  await expect(record("job/retention")).rejects.toThrow("is not for job/retention by system");
  expect(await trail.breaks()).toEqual([]);
});
