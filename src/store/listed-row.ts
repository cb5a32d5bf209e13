import type { ListedRow, PagePosition } from "../domain/page.ts";
import { bytesOf, octets, shortText } from "./expressions.ts";
import { textOf } from "./long-text.ts";
import { prepared } from "./prepared.ts";
import type { Reader } from "./store.ts";

/**
 * Maximum length of texts that are selected with their row: those of the largest list are 1 MiB
 * together.
 */
export const SHORT_BYTES = 8_192;

/** A row with the columns of {@link bodyColumns}. */
export interface BodyRow {
  readonly id: string;
  /** Null when it is too long to be selected with the row. */
  readonly body: string | null;
  readonly bytes: number;
}

/** Tables whose rows have an id and a text. */
type BodyTable =
  | "agent"
  | "agent_execution"
  | "agent_review_draft"
  | "approval"
  | "environment"
  | "environment_class"
  | "event_delivery"
  | "event_subscription"
  | "host_token"
  | "member_group"
  | "prebuild"
  | "project"
  | "pull_request"
  | "runner"
  | "secret"
  | "security_policy"
  | "service_account"
  | "service_account_trust"
  | "token"
  | "workflow"
  | "workflow_action"
  | "workflow_execution"
  | "workflow_trigger_event";

/** Selects a short body, and the length of any: for a list, instead of a body of unknown length. */
export function bodyColumns(table: BodyTable) {
  return textColumns(`${table}.body`);
}

/** Selects another column in the same way. */
export function textColumns(column: `${string}.${string}`) {
  return [shortText(column, SHORT_BYTES).as("body"), octets(column).as("bytes")] as const;
}

/** Returns rows of a list, whose long bodies are read when they are on the page. */
export function listedRows<R extends BodyRow, T>(
  db: Reader,
  table: BodyTable,
  rows: readonly R[],
  positionOf: (row: R) => PagePosition,
  contentOf: (row: R & { readonly body: string }) => T,
): ListedRow<T>[] {
  return rows.map((row) => listedRow(row, positionOf(row), () => findBody(db, table, row.id), contentOf));
}

const selectBody = (table: BodyTable) =>
  prepared<{ id: string }, { body: Uint8Array | string }>((db, { id }) =>
    db
      .selectFrom(table)
      .select(bytesOf(`${table}.body`).as("body"))
      .where("id", "=", id),
  );

const queries = new Map<BodyTable, ReturnType<typeof selectBody>>();

async function findBody(db: Reader, table: BodyTable, id: string): Promise<string | undefined> {
  let query = queries.get(table);
  if (!query) {
    query = selectBody(table);
    queries.set(table, query);
  }
  const [row] = await query(db, { id });
  return row && textOf(row.body);
}

/** Returns one row of a list; `find` reads its text when it was not selected. */
export function listedRow<R extends Omit<BodyRow, "id">, T>(
  row: R,
  position: PagePosition,
  find: () => Promise<string | undefined>,
  contentOf: (row: R & { readonly body: string }) => T,
): ListedRow<T> {
  const { body, bytes } = row;
  if (body !== null) return { position, bytes, read: () => contentOf({ ...row, body }) };
  return {
    position,
    bytes,
    async read() {
      const found = await find();
      return found === undefined ? undefined : contentOf({ ...row, body: found });
    },
  };
}
