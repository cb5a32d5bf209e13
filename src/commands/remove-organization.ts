import type { DataConfig } from "../config/config.ts";
import { removeOrganization as removeRows } from "../store/access/organization-removal.ts";
import { findOpenAgentExecutionIds } from "../store/agent/agent-execution-search.ts";
import { countRunningEnvironments } from "../store/environment/environment-count.ts";
import type { StoredOrganization } from "../store/identity/organization.ts";
import { findOrganization } from "../store/identity/organization.ts";
import { OPERATOR, type Reader } from "../store/store.ts";
import { findOpenExecutionIds } from "../store/workflow/workflow-execution.ts";
import { withoutServer } from "./open-data.ts";
import { resolveOrganization } from "./organization.ts";
import { StartError } from "./start-error.ts";

export interface RemovalOptions {
  /** The organization's id, or its name if that is unique. */
  readonly named: string;
  /** True if the operator has confirmed the removal, which cannot be undone. */
  readonly yes: boolean;
  /** True to remove running environments and executions too. */
  readonly force: boolean;
}

/**
 * Removes an organization with all its rows in one commit, and records in the installation's audit chain where the
 * organization's own chain ended.
 *
 * @param print called for each table before its rows are removed, with lines for the person at the terminal
 * @returns a summary line
 * @throws StartError without a confirmation, while a server runs on the folder, when no organization matches, or when
 *   environments or executions run and `force` is not set
 */
export async function removeOrganization(
  config: DataConfig,
  { named, yes, force }: RemovalOptions,
  print: (text: string) => void,
): Promise<string> {
  return withoutServer(
    config,
    "organizations are removed",
    async ({ store }) => {
      const { id, name } = await resolveOrganization(store, named);
      if (!yes) {
        throw new StartError(
          `this would remove ${name} (${id}) permanently, with its audit trail: make a backup, then add --yes`,
        );
      }
      return await store.write(OPERATOR, "chartroom organization remove", async (tx) => {
        const organization = await findOrganization(tx.db, { organizationId: id });
        if (!organization) throw new StartError(`no organization has the id ${id}`);
        if (!force) await requireNothingRuns(tx.db, organization);
        let removed = 0;
        await removeRows(tx, organization, (table, rows) => {
          removed += rows;
          print(`removing ${rows} of ${table}\n`);
        });
        return summaryOf(organization, removed);
      });
    },
    { hasLargeWrites: true },
  );
}

async function requireNothingRuns(db: Reader, { id, name }: StoredOrganization): Promise<void> {
  const scope = { organizationId: id };
  const running = [
    [await countRunningEnvironments(db, scope), "environments"],
    [(await findOpenExecutionIds(db, scope, {})).length, "workflow executions"],
    [(await findOpenAgentExecutionIds(db, scope, {})).length, "agent executions"],
  ] as const;
  const open = running.filter(([count]) => count > 0);
  if (open.length === 0) return;
  const summary = open.map(([count, what]) => `${count} ${what}`).join(", ");
  throw new StartError(`${name} has running work (${summary}): stop it first, or add --force`);
}

function summaryOf({ id, name, sequence, chain_hash }: StoredOrganization, rows: number): string {
  const hash = chain_hash ? ` with the hash ${Buffer.from(chain_hash).toString("hex")}` : "";
  return `${name} (${id}) is removed, ${rows} rows; its audit chain ended at row ${sequence}${hash}\n`;
}
