import type { Config } from "../../config/config.ts";
import type { RetainedKind } from "../../domain/policy/retention.ts";
import { ageAudit, previewAgeing } from "../../jobs/retention/audit-ageing.ts";
import {
  applyRetention,
  previewRetentionAsOperator,
  retentionOfSettings,
} from "../../jobs/retention/retention.ts";
import { auditMacOf } from "../../keys.ts";
import { auditTargetsOf } from "../../sinks/audit-sinks.ts";
import { openExistingData } from "../open-data.ts";
import { requireAuditTarget } from "../preflight.ts";

/** The singular and plural names of a kind. */
const WORDS: Readonly<Record<RetainedKind | "auditRows", readonly [one: string, several: string]>> = {
  executions: ["workflow execution", "workflow executions"],
  agentExecutions: ["agent execution", "agent executions"],
  triggerEntries: ["trigger entry", "trigger entries"],
  events: ["event", "events"],
  auditRows: ["row of the audit trail", "rows of the audit trail"],
};

/**
 * Removes expired data once, next to a server or without one.
 *
 * @param print called with a line for each organization and kind
 * @returns a summary line
 * @throws StartError when the data cannot be opened, ConfigError when audit rows would be removed that exist nowhere
 *   else
 */
export async function runRetention(
  config: Config,
  isDryRun: boolean,
  now: number,
  print: (text: string) => void,
): Promise<string> {
  const trail = { days: config.auditRetention, targets: auditTargetsOf(config) };
  requireAuditTarget(config);
  const { store, keys } = await openExistingData(config);
  const defaults = retentionOfSettings(config);
  try {
    if (isDryRun) {
      const removals = await previewRetentionAsOperator(store, defaults, now);
      for (const { kind, rows, bytes, ...organization } of removals)
        print(`${nameOf(organization)}: ${countOf(kind, rows)}, ${bytes} bytes\n`);
      const audit = await previewAgeing(store, trail, now);
      for (const { rows, bytes, ...organization } of audit)
        print(`${nameOf(organization)}: ${countOf("auditRows", rows)}, ${bytes} bytes\n`);
      const bytes = [...removals, ...audit].reduce((sum, removal) => sum + removal.bytes, 0);
      return removals.length + audit.length === 0
        ? "nothing would be removed\n"
        : `${bytes} bytes would be removed\n`;
    }
    let isAny = false;
    await applyRetention(store, defaults, now, ({ kind, rows, ...organization }) => {
      isAny = true;
      print(`${nameOf(organization)}: removed ${countOf(kind, rows)}\n`);
    });
    await ageAudit(store, auditMacOf(keys), trail, now, ({ rows, ...organization }) => {
      isAny = true;
      print(`${nameOf(organization)}: removed ${countOf("auditRows", rows)}\n`);
    });
    return isAny ? "everything past its retention was removed\n" : "there was nothing to remove\n";
  } finally {
    await store.close();
  }
}

function nameOf({
  name,
  organizationId,
}: {
  readonly name: string;
  readonly organizationId: string;
}): string {
  return `${name} (${organizationId})`;
}

function countOf(kind: keyof typeof WORDS, rows: number): string {
  const [one, several] = WORDS[kind];
  return `${rows} ${rows === 1 ? one : several}`;
}
