import type { Caller } from "../../../src/domain/identity/caller.ts";
import type { AuditSink, AuditTarget, ExportLine } from "../../../src/domain/record/audit-export.ts";
import { exportAudit } from "../../../src/jobs/audit-export.ts";
import { auditMacOf } from "../../../src/keys.ts";
import { findAnchors } from "../../../src/store/record/audit-ageing.ts";
import { verifyChains } from "../../../src/store/record/audit-chain.ts";
import { SYSTEM, within } from "../../../src/store/store.ts";
import { withRawData } from "../../harness/raw-data.ts";
import { openReadOnlyData } from "../../harness/read-only-data.ts";
import { DAY_MS, openTestStore, START_MS } from "../../harness/test-store.ts";

/** When the rows are made: they are older than the floor for the database's own clock, too. */
export const OLD_MS = START_MS - 1_000 * DAY_MS;

/** Opens a store whose chains are long ago, with what ages them. */
export async function openOldTrail() {
  const made = openTestStore();
  made.clock.now = OLD_MS;
  const harbour = await made.createOrganization("harbour");
  const lighthouse = await made.createOrganization("lighthouse");
  /** What targets have taken. */
  const taken: Record<AuditTarget, ExportLine[]> = { file: [], otlp: [] };
  const sinkOf = (target: AuditTarget): AuditSink => ({
    target,
    async take(lines) {
      taken[target].push(...lines);
    },
  });
  /** Adds rows to a chain. */
  const add = (scope: Caller, rows: number) =>
    made.store.write(
      SYSTEM,
      "test",
      async (tx) => {
        for (let number = 0; number < rows; number++)
          tx.record({
            organizationId: scope.organizationId,
            type: "runner",
            id: `runner-${number}`,
            kind: "updated",
            after: { number },
          });
      },
      within(scope),
    );
  /** Returns the number of the newest row of a chain. */
  async function headOf({ organizationId }: Caller): Promise<number> {
    const [row] = await withRawData(made.dataDir, (raw) =>
      raw.rows<{ sequence: number }>("select sequence from organization where id = ?", organizationId),
    );
    return row?.sequence ?? 0;
  }
  return {
    made,
    harbour,
    lighthouse,
    taken,
    add,
    headOf,
    mac: auditMacOf(made.keys),
    /** Adds rows until a chain has a number of them. */
    fill: async (scope: Caller, rows: number) => add(scope, rows - (await headOf(scope))),
    exportTo: (target: AuditTarget) => exportAudit(made.store, made.keys, sinkOf(target)),
    anchorOf: async ({ organizationId }: Caller) =>
      (await findAnchors(made.store.reader)).get(organizationId),
    /** Returns where chains break, and why. */
    async breaks(keys = made.keys): Promise<string[]> {
      const copy = await openReadOnlyData(made.dataDir);
      try {
        const reports = await verifyChains(copy.reader, auditMacOf(keys));
        return reports.flatMap(({ broken }) => (broken ? [`${broken.sequence}: ${broken.problem}`] : []));
      } finally {
        await copy.close();
      }
    },
  };
}

export type OldTrail = Awaited<ReturnType<typeof openOldTrail>>;
