import type { Subject } from "#gen/service/v1/identity_pb.js";
import { unindexed } from "../expressions.ts";
import { prepared } from "../prepared.ts";
import type { Handle, Reader, Scope } from "../store.ts";
import type { AgentExecutionTable } from "./agent-schema.ts";

/** An earlier execution whose conversation another one continues. */
export interface EarlierExecution {
  /** Its id; it may have been removed. */
  readonly id: string;
  /** Number of its last block that is part of the conversation. */
  readonly sequence: number;
  /** True for a branch: the conversation may continue differently outside it. */
  readonly isFork: boolean;
  /** Set of RunOrigin by bits: who started it and the executions that it descends from. */
  readonly origins: number;
}

/** The columns of {@link EarlierExecution}. */
export type EarlierColumns = "earlier_id" | "earlier_sequence" | "is_fork" | "origins";

export function earlierOfRow(row: Pick<AgentExecutionTable, EarlierColumns>): EarlierExecution | undefined {
  const { earlier_id: id, earlier_sequence: sequence, is_fork, origins } = row;
  return id === null ? undefined : { id, sequence, isFork: is_fork === 1, origins };
}

export function columnsOfEarlier(earlier: EarlierExecution | undefined) {
  return {
    earlier_id: earlier?.id ?? null,
    earlier_sequence: earlier?.sequence ?? 0,
    is_fork: earlier?.isFork ? 1 : 0,
    origins: earlier?.origins ?? 0,
  };
}

/** The blocks of one execution that are part of a conversation. */
export interface OutputPart {
  readonly executionId: Handle<"agent_execution">;
  /** Number of the last of them, or a greater one for all. */
  readonly through: number;
}

/** Returns the part of a conversation that consists of all blocks of an execution. */
export function wholeOutput(executionId: Handle<"agent_execution">): OutputPart {
  return { executionId, through: Number.MAX_SAFE_INTEGER };
}

/** Returns the parts that may have blocks after a number. */
export function partsAfter<P extends OutputPart>(parts: readonly P[], after: number): readonly P[] {
  return parts.filter(({ through }) => through > after);
}

/** An earlier part of a conversation, and its owner. */
export interface EarlierPart extends OutputPart {
  readonly creator: Pick<Subject, "id" | "principal">;
}

interface EarlierRow
  extends Pick<AgentExecutionTable, "earlier_id" | "earlier_sequence" | "creator_id" | "creator_principal"> {
  readonly id: Handle<"agent_execution">;
}

const selectEarlier = prepared<{ id: string; organizationId: string }, EarlierRow>(
  (db, { id, organizationId }) =>
    db
      .withRecursive("run", (cte) =>
        cte
          .selectFrom("agent_execution")
          .select([
            "agent_execution.id",
            "agent_execution.earlier_id",
            "agent_execution.earlier_sequence",
            "agent_execution.creator_id",
            "agent_execution.creator_principal",
          ])
          .where("agent_execution.id", "=", id)
          .where(unindexed("agent_execution.organization_id"), "=", organizationId)
          .unionAll(
            cte
              .selectFrom("run")
              .innerJoin("agent_execution", "agent_execution.id", "run.earlier_id")
              .select([
                "agent_execution.id",
                "agent_execution.earlier_id",
                "agent_execution.earlier_sequence",
                "agent_execution.creator_id",
                "agent_execution.creator_principal",
              ])
              .where(unindexed("agent_execution.organization_id"), "=", organizationId),
          ),
      )
      .selectFrom("run")
      .selectAll() as never,
);

/**
 * Returns the parts of a conversation before an execution that continues it, the newest first, back to its beginning
 * or to an execution that was removed.
 */
export async function findEarlierParts(
  db: Reader,
  { organizationId }: Scope,
  earlier: EarlierExecution,
): Promise<EarlierPart[]> {
  const rows = await selectEarlier(db, { id: earlier.id, organizationId });
  const byId = new Map<string, EarlierRow>(rows.map((row) => [row.id, row]));
  const parts: EarlierPart[] = [];
  let { id, sequence } = earlier;
  for (let row = byId.get(id); row; row = byId.get(id)) {
    const creator = { id: row.creator_id, principal: row.creator_principal };
    parts.push({ executionId: row.id, through: sequence, creator });
    id = row.earlier_id ?? "";
    // A branch may begin before the first block of the execution that it branches from.
    sequence = Math.min(sequence, row.earlier_sequence);
  }
  return parts;
}

const selectContinuation = prepared<
  { organizationId: string; environmentId: string; id: string },
  { id: string }
>((db, { organizationId, environmentId, id }) =>
  db
    .selectFrom("agent_execution")
    .select("id")
    .where("environment_id", "=", environmentId)
    .where("earlier_id", "=", id)
    .where("is_fork", "=", 0)
    .where(unindexed("agent_execution.organization_id"), "=", organizationId)
    .limit(1),
);

/** Returns the id of the execution that continues an earlier one; undefined for none. Branches do not count. */
export async function findContinuation(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
  id: Handle<"agent_execution">,
): Promise<string | undefined> {
  const [row] = await selectContinuation(db, { organizationId, environmentId, id });
  return row?.id;
}
