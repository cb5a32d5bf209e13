import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Kysely } from "kysely";
import { EventOperation, type EventSchema, type ResourceType } from "#gen/service/v1/event_pb.js";
import { kindOf, storedTypes } from "./resource-type.ts";
import type { EventTable, Schema } from "./schema.ts";
import type { Scope } from "./store.ts";

/** Events of an organization and how far its record reaches, all of one moment. */
export interface EventPage {
  /** By sequence ascending. */
  readonly events: readonly EventRow[];
  /** Number of the newest row of the record, whatever its kind. */
  readonly head: number;
  /** Events up to this number were removed; 0 while none was. */
  readonly pruned: number;
}

export type EventRow = Omit<EventTable, "organization_id">;

const OPERATIONS: Readonly<Record<string, EventOperation>> = {
  created: EventOperation.CREATED,
  updated: EventOperation.UPDATED,
  deleted: EventOperation.DELETED,
};

/**
 * Up to `limit` events after a number; `kinds` empty means of all kinds. One
 * statement, so that rows and numbers belong together.
 */
export async function findEventsAfter(
  db: Kysely<Schema>,
  { organizationId }: Scope,
  after: number,
  kinds: readonly ResourceType[],
  limit: number,
): Promise<EventPage> {
  const rows = await db
    .selectFrom("organization")
    .leftJoin("event", (join) => {
      const later = join
        .onRef("event.organization_id", "=", "organization.id")
        .on("event.sequence", ">", after);
      return kinds.length > 0 ? later.on("event.resource_type", "in", storedTypes(kinds)) : later;
    })
    .select([
      "organization.sequence as head",
      "organization.pruned_sequence as pruned",
      "event.sequence",
      "event.at",
      "event.kind",
      "event.resource_type",
      "event.resource_id",
    ])
    .where("organization.id", "=", organizationId)
    .orderBy("event.sequence")
    .limit(limit)
    .execute();
  const [first] = rows;
  if (!first) throw new Error(`the organization ${organizationId} does not exist`);
  const { head, pruned } = first;
  const events = rows.flatMap((row) => (row.sequence === null ? [] : [row as EventRow]));
  return { events, head, pruned };
}

/** Number of the oldest event that is kept; undefined when none is. */
export async function findOldestEvent(
  db: Kysely<Schema>,
  { organizationId }: Scope,
): Promise<number | undefined> {
  const row = await db
    .selectFrom("event")
    .select("sequence")
    .where("organization_id", "=", organizationId)
    .orderBy("sequence")
    .limit(1)
    .executeTakeFirst();
  return row?.sequence;
}

export function toEvent(row: EventRow): MessageInitShape<typeof EventSchema> {
  return {
    operation: OPERATIONS[row.kind] ?? EventOperation.UNSPECIFIED,
    resourceType: kindOf(row.resource_type),
    resourceId: row.resource_id,
    sequence: BigInt(row.sequence),
    at: timestampFromMs(row.at),
  };
}
