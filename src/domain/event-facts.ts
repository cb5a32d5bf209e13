import type { JsonObject } from "./diff.ts";

/**
 * Facts about an event's resource that decide who may read the event, even after the resource was
 * removed. Each is an id, or null for none.
 */
export interface EventFacts {
  /** Id of the subject that created the resource. */
  readonly creatorId: string | null;
  /**
   * Id of the only subject, besides administrators, that may always read a resource of a personal
   * type.
   */
  readonly ownerId: string | null;
  /** Id of the environment that the resource is, or is in. */
  readonly environmentId: string | null;
}

/**
 * Returns the id of the subject that a resource's body names as its creator; null for none.
 *
 * @param body the canonical JSON of a message of the contract, or a part of it
 */
export function creatorIdIn(body: JsonObject): string | null {
  const { metadata, creator } = body as Body;
  return metadata?.creator?.id ?? creator?.id ?? null;
}

/** The place of the creator in messages of the contract. */
interface Body {
  readonly metadata?: { readonly creator?: { readonly id?: string } };
  readonly creator?: { readonly id?: string };
}
