import { type ExpressionBuilder, sql } from "kysely";
import { type AgentOutputBlock, AgentOutputBlockSchema } from "#gen/service/v1/agent_pb.js";
import { foldBlock, REPLACED_KEYS } from "../../domain/agent/agent-output-fold.ts";
import type { ListedRow } from "../../domain/page.ts";
import { checkDeadline, octets } from "../expressions.ts";
import { firstRows } from "../first-rows.ts";
import { fromBody } from "../json.ts";
import { listedRow, textColumns } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Schema } from "../schema.ts";
import type { Handle, Reader } from "../store.ts";
import { type OutputPart, partsAfter } from "./agent-conversation.ts";

/** Number of blocks of one tool call that are read at a time. */
const BLOCKS_PER_READ = 16;

/** The view and position of a list of an execution's output. */
export interface OutputQuery {
  readonly folded: boolean;
  /** Number of the last block on the previous page. */
  readonly after: number | undefined;
  readonly limit: number;
}

/**
 * Returns blocks of a conversation by their numbers: all, or those of the folded view.
 * @param parts oldest first
 */
export async function findOutputPage(
  db: Reader,
  parts: readonly OutputPart[],
  query: OutputQuery,
): Promise<ListedRow<AgentOutputBlock>[]> {
  const rows: ListedRow<AgentOutputBlock>[] = [];
  for (const part of partsAfter(parts, query.after ?? 0)) {
    rows.push(...(await findPageOfPart(db, part, { ...query, limit: query.limit - rows.length })));
    if (rows.length === query.limit) break;
  }
  return rows;
}

async function findPageOfPart(
  db: Reader,
  { executionId, through }: OutputPart,
  { folded, after, limit }: OutputQuery,
): Promise<ListedRow<AgentOutputBlock>[]> {
  const own = builderOf(db)
    .selectFrom("agent_output")
    .select(["sequence", "fold_key"])
    .where(checkDeadline())
    .where("execution_id", "=", executionId)
    .where("sequence", "<=", through);
  const [body, bytes] = textColumns("agent_output.body");
  const fitting = folded
    ? own
        .where((eb) => isShown(eb, through))
        .select((eb) => [body, foldedBytes(eb, through).$castTo<number>().as("bytes")])
    : own.select([body, bytes]);
  const order = {
    columns: ["agent_output.sequence"],
    direction: "asc",
    after: after === undefined ? undefined : [after],
  } as const;
  const rows = await firstRows(own, fitting, order, limit);
  return rows.map((row) => {
    const position = { key: row.sequence, id: executionId };
    const key = row.fold_key;
    if (folded && key !== null)
      return {
        position,
        bytes: row.bytes,
        read: () => findFolded(db, executionId, { key, through }),
      };
    const find = async () => (await selectBody(db, { executionId, sequence: row.sequence }))[0]?.body;
    return listedRow(row, position, find, ({ body }) => {
      const block = fromBody(AgentOutputBlockSchema, body);
      return folded ? foldBlock(undefined, block) : block;
    });
  });
}

type OutputExpressions = ExpressionBuilder<Schema, "agent_output">;

/** Selects the other blocks with a row's key, before or after it, up to a number. */
const othersOf = (eb: OutputExpressions, operator: "<" | ">", through: number) =>
  eb
    .selectFrom("agent_output as other")
    .select(eb.lit(1).as("one"))
    .whereRef("other.execution_id", "=", "agent_output.execution_id")
    .whereRef("other.fold_key", "=", "agent_output.fold_key")
    .whereRef("other.sequence", operator, "agent_output.sequence")
    .where("other.sequence", "<=", through);

const isReplaced = (eb: OutputExpressions) =>
  eb(
    "agent_output.fold_key",
    "in",
    REPLACED_KEYS.map((key) => sql.lit<string>(key)),
  );

/**
 * The condition that a row has a place in the folded view: merged blocks take that of the first, others of the last.
 */
const isShown = (eb: OutputExpressions, through: number) =>
  eb.or([
    eb("agent_output.fold_key", "is", null),
    eb.and([isReplaced(eb), eb.not(eb.exists(othersOf(eb, ">", through)))]),
    eb.and([eb.not(isReplaced(eb)), eb.not(eb.exists(othersOf(eb, "<", through)))]),
  ]);

/** Maximum bytes of a row in the folded view. */
const foldedBytes = (eb: OutputExpressions, through: number) =>
  eb
    .case()
    .when(eb.or([eb("agent_output.fold_key", "is", null), isReplaced(eb)]))
    .then(octets("agent_output.body"))
    .else(
      eb
        .selectFrom("agent_output as other")
        .select(({ fn }) => fn.sum<number>(octets("other.body")).as("bytes"))
        .whereRef("other.execution_id", "=", "agent_output.execution_id")
        .whereRef("other.fold_key", "=", "agent_output.fold_key")
        .where("other.sequence", "<=", through),
    )
    .end();

const selectBody = prepared<{ executionId: string; sequence: number }, { body: string }>(
  (db, { executionId, sequence }) =>
    db
      .selectFrom("agent_output")
      .select("body")
      .where("execution_id", "=", executionId)
      .where("sequence", "=", sequence),
);

const selectOfKey = prepared<
  { executionId: string; key: string; after: number; through: number; limit: number },
  { body: string; sequence: number }
>((db, { executionId, key, after, through, limit }) =>
  db
    .selectFrom("agent_output")
    .select(["sequence", "body"])
    .where("execution_id", "=", executionId)
    .where("fold_key", "=", key)
    .where("sequence", ">", after)
    .where("sequence", "<=", through)
    .orderBy("sequence")
    .limit(limit),
);

/** Identifies blocks of one key. */
export interface FoldStart {
  readonly key: string;
  /** The folded block so far; undefined to start from the first block. */
  readonly before?: AgentOutputBlock | undefined;
  /** Number of the last block to fold. Default: that of the newest. */
  readonly through?: number | undefined;
}

/** Returns the folded block of a key; undefined if there is none any more. */
export async function findFolded(
  db: Reader,
  executionId: Handle<"agent_execution">,
  { key, before, through = Number.MAX_SAFE_INTEGER }: FoldStart,
): Promise<AgentOutputBlock | undefined> {
  let folded = before;
  for (let after = Number(before?.lastSequence ?? 0); ; ) {
    const rows = await selectOfKey(db, { executionId, key, after, through, limit: BLOCKS_PER_READ });
    for (const row of rows) {
      folded = foldBlock(folded, fromBody(AgentOutputBlockSchema, row.body));
      after = row.sequence;
    }
    if (rows.length < BLOCKS_PER_READ) return folded;
  }
}

const selectChanged = prepared<
  { executionId: string; after: number; through: number; limit: number },
  { sequence: number; fold_key: string | null; body: string }
>((db, { executionId, after, through, limit }) =>
  db
    .selectFrom("agent_output")
    .select(["sequence", "fold_key", "body"])
    .where("execution_id", "=", executionId)
    .where("sequence", ">", after)
    .where("sequence", "<=", through)
    .where((eb) => eb.or([eb("fold_key", "is", null), eb.not(eb.exists(othersOf(eb, ">", through)))]))
    .orderBy("sequence")
    .limit(limit),
);

/** A block of an execution's output, and the key it folds with. */
export interface ChangedBlock {
  readonly key: string | null;
  readonly block: AgentOutputBlock;
}

/** Returns up to `limit` blocks of a part after a number, without blocks that a later block has changed. */
export async function findChangedOutput(
  db: Reader,
  { executionId, through }: OutputPart,
  after: number,
  limit: number,
): Promise<ChangedBlock[]> {
  const rows = await selectChanged(db, { executionId, after, through, limit });
  return rows.map(({ fold_key, body }) => ({ key: fold_key, block: fromBody(AgentOutputBlockSchema, body) }));
}
