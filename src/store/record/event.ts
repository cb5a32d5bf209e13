import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ResourceOperation, ResourceType } from "#gen/service/v1/event_pb.js";
import type { WatchEventsResponseSchema } from "#gen/service/v1/event_service_pb.js";
import type { EventDescription } from "../../domain/record/event-filter.ts";
import { builderOf } from "../query-builder.ts";
import { kindOf } from "../resource-type.ts";
import type { Reader, Scope, ResourceType as StoredType } from "../store.ts";
import type { EventTable } from "./record-schema.ts";

/** Events of an organization and the end of its record, from one snapshot. */
export interface EventPage {
  /** In ascending order of sequence. */
  readonly events: readonly EventRow[];
  /** Number of the newest row of the record, of any kind. */
  readonly head: number;
  /** Number up to which events were removed; 0 if none were. */
  readonly pruned: number;
}

/** An event as it is stored; {@link toEvent} makes it a message of a stream. */
export interface EventRow extends EventDescription {
  readonly operation: ResourceOperation;
  readonly sequence: number;
  /** Milliseconds since 1970 UTC. */
  readonly at: number;
}

const OPERATIONS: Readonly<Record<string, ResourceOperation>> = {
  created: ResourceOperation.CREATE,
  updated: ResourceOperation.UPDATE,
  deleted: ResourceOperation.DELETE,
};

/**
 * Returns up to `limit` events after a number. It is one statement, so that rows and numbers come from the same
 * snapshot.
 * @param only types of the resources, and the last number to read; default all
 */
export async function findEventsAfter(
  db: Reader,
  { organizationId }: Scope,
  after: number,
  limit: number,
  only?: { readonly types: readonly StoredType[]; readonly upTo: number },
): Promise<EventPage> {
  const rows = await builderOf(db)
    .selectFrom("organization")
    .leftJoin("event", (join) => {
      const newer = join
        .onRef("event.organization_id", "=", "organization.id")
        .on("event.sequence", ">", after);
      return only
        ? newer.on("event.resource_type", "in", only.types).on("event.sequence", "<=", only.upTo)
        : newer;
    })
    .select([
      "organization.sequence as head",
      "organization.pruned_sequence as pruned",
      "event.sequence",
      "event.at",
      "event.kind",
      "event.resource_type",
      "event.resource_id",
      "event.creator_id",
      "event.owner_id",
      "event.environment_id",
    ])
    .where("organization.id", "=", organizationId)
    .orderBy("event.sequence")
    .limit(limit)
    .execute();
  const [first] = rows;
  if (!first) throw new Error(`the organization ${organizationId} does not exist`);
  const { head, pruned } = first;
  const events = rows.flatMap((row) => (row.sequence === null ? [] : [eventOfRow(row as EventColumns)]));
  return { events, head, pruned };
}

/** Returns the number of the oldest stored event; undefined when there is none. */
export async function findOldestEvent(db: Reader, { organizationId }: Scope): Promise<number | undefined> {
  const row = await builderOf(db)
    .selectFrom("event")
    .select("sequence")
    .where("organization_id", "=", organizationId)
    .orderBy("sequence")
    .limit(1)
    .executeTakeFirst();
  return row?.sequence;
}

type EventColumns = Omit<EventTable, "organization_id">;

function eventOfRow(row: EventColumns): EventRow {
  return {
    operation: OPERATIONS[row.kind] ?? ResourceOperation.UNSPECIFIED,
    resourceType: kindOf(row.resource_type),
    resourceId: row.resource_id,
    creatorId: row.creator_id,
    ownerId: row.owner_id,
    environmentId: row.environment_id,
    sequence: row.sequence,
    at: row.at,
  };
}

/** A message of a stream. */
export type EventMessage = MessageInitShape<typeof WatchEventsResponseSchema>;

export function toEvent({ operation, resourceType, resourceId, sequence, at }: EventRow): EventMessage {
  return { operation, resourceType, resourceId, sequence: BigInt(sequence), at: timestampFromMs(at) };
}

/** Returns a message about the stream itself, which names the organization as its resource. */
export function toStreamMessage(
  { organizationId }: Scope,
  sequence: number,
  oldestSequence?: number,
): EventMessage {
  return {
    operation: ResourceOperation.UNSPECIFIED,
    resourceType: ResourceType.ORGANIZATION,
    resourceId: organizationId,
    sequence: BigInt(sequence),
    ...(oldestSequence !== undefined && { historyPruned: { oldestSequence: BigInt(oldestSequence) } }),
  };
}
