import { type AgentInput, AgentInputReceipt as Receipt } from "#gen/service/v1/agent_pb.js";
import type { ListedRow } from "../../domain/page.ts";
import { checkDeadline, contains } from "../expressions.ts";
import { firstOfFew } from "../first-rows.ts";
import { listedRow, textColumns } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Handle, Reader } from "../store.ts";
import { inputOfRow } from "./agent-input.ts";

/** The conditions and position of a list of an execution's inputs. */
export interface InputQuery {
  /** True to include inputs that no longer wait, all in the order of their arrival. */
  readonly includePast: boolean;
  /** Key of the last input on the previous page. */
  readonly after: number | undefined;
  readonly limit: number;
}

/** Returns inputs of an execution without the data of images: the queue in the order of delivery, or all. */
export async function findInputPage(
  db: Reader,
  executionId: Handle<"agent_execution">,
  { includePast, after, limit }: InputQuery,
): Promise<ListedRow<AgentInput>[]> {
  const key = includePast ? "number" : "place";
  const query = inputsOf(db, executionId);
  const listed = includePast ? query : query.where("receipt", "=", Receipt.QUEUED);
  return inputRows(db, executionId, listed, key, { after, limit });
}

/** Returns the inputs of an execution that carry a review, in the order of their arrival. */
export async function findReviewPage(
  db: Reader,
  executionId: Handle<"agent_execution">,
  after: number | undefined,
  limit: number,
): Promise<ListedRow<AgentInput>[]> {
  // A fragment of the stored JSON: within a text its quotation marks would be escaped, and a map value is not an
  // object.
  const reviews = inputsOf(db, executionId).where(contains("agent_input.body", '"review":{'));
  return inputRows(db, executionId, reviews, "number", { after, limit });
}

function inputsOf(db: Reader, executionId: Handle<"agent_execution">) {
  return builderOf(db)
    .selectFrom("agent_input")
    .select(["input_id", "number", "place", "receipt", ...textColumns("agent_input.body")])
    .where(checkDeadline())
    .where("execution_id", "=", executionId);
}

async function inputRows(
  db: Reader,
  executionId: Handle<"agent_execution">,
  query: ReturnType<typeof inputsOf>,
  key: "number" | "place",
  { after, limit }: Pick<InputQuery, "after" | "limit">,
): Promise<ListedRow<AgentInput>[]> {
  const order = {
    columns: [`agent_input.${key}`],
    direction: "asc",
    after: after === undefined ? undefined : [after],
  } as const;
  const rows = await firstOfFew(query, order, limit);
  // Inputs of one execution differ by their key; the id only completes the format of the token.
  return rows.map((row) =>
    listedRow(
      row,
      { key: row[key], id: executionId },
      async () => (await findInputBody(db, { executionId, inputId: row.input_id }))[0]?.body,
      inputOfRow,
    ),
  );
}

const findInputBody = prepared<{ executionId: string; inputId: string }, { body: string }>(
  (db, { executionId, inputId }) =>
    db
      .selectFrom("agent_input")
      .select("body")
      .where("execution_id", "=", executionId)
      .where("input_id", "=", inputId),
);
