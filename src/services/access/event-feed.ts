import type { Caller } from "../../domain/identity/caller.ts";
import type { Policies } from "../../domain/policy/policies.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { type EventPage, findEventsAfter } from "../../store/record/event.ts";
import type { Scope, Store } from "../../store/store.ts";
import { eventsOf, rightsOf } from "../../store/topics.ts";
import { revalidate } from "../call/authenticated-caller.ts";

/** Events that a stream holds at most: they are read in pages, which streams at the same place share. */
export const EVENTS_PER_READ = 100;

/** The reader of events, as committed now. */
export interface EventReader {
  /** The caller with its present role. */
  readonly caller: Caller;
  readonly policies: Policies;
}

/** The part that all event streams of one organization share. */
export interface EventFeed {
  /** Calls `wake` after each commit that left events or changed rights. Returns what ends it. */
  join(wake: () => void): () => void;
  /** Returns the events after a number: one query for all streams that ask at the same time. */
  read(after: number): Promise<EventPage>;
  /**
   * Returns what decides now which events a caller may read. It is asked before
   * each event, and looked up again only after rights have changed.
   *
   * @throws DomainError UNAUTHENTICATED or ACCOUNT_BLOCKED for a caller whose token no longer holds
   */
  readerOf(caller: Caller): Promise<EventReader>;
}

/** Returns the feed of an organization, the same for all its open streams. */
export type EventFeeds = (scope: Scope) => EventFeed;

export function createEventFeeds(store: Pick<Store, "reader" | "onChange">, now: () => number): EventFeeds {
  const feeds = new Map<string, EventFeed>();
  return ({ organizationId }) => {
    const known = feeds.get(organizationId);
    if (known) return known;
    const feed = createFeed(store, now, { organizationId }, () => feeds.delete(organizationId));
    feeds.set(organizationId, feed);
    return feed;
  };
}

/** @param leftByAll called when the last stream has left */
function createFeed(
  { reader: db, onChange }: Pick<Store, "reader" | "onChange">,
  now: () => number,
  scope: Scope,
  leftByAll: () => void,
): EventFeed {
  const streams = new Set<() => void>();
  const pages = new Map<number, Promise<EventPage>>();
  const readers = new Map<string, Promise<EventReader>>();
  let policies: Promise<Policies> | undefined;
  const wakeAll = () => {
    pages.clear();
    for (const wake of [...streams]) wake();
  };
  const forgetRights = () => {
    readers.clear();
    policies = undefined;
  };
  let leave: (() => void)[] = [];
  return {
    join(wake) {
      // Rights first: a stream that wakes must find them forgotten.
      if (streams.size === 0) {
        leave = [onChange(rightsOf(scope), forgetRights), onChange(eventsOf(scope), wakeAll)];
      }
      streams.add(wake);
      return () => {
        if (!streams.delete(wake) || streams.size > 0) return;
        for (const end of leave) end();
        leave = [];
        leftByAll();
      };
    },
    read(after) {
      const known = pages.get(after);
      if (known) return known;
      const page = findEventsAfter(db, scope, after, EVENTS_PER_READ);
      pages.set(after, page);
      // Kept for the turn only: what slow streams would come back for is not worth its memory.
      const forget = () => setImmediate(() => pages.get(after) === page && pages.delete(after));
      page.then(forget, forget);
      return page;
    },
    readerOf(caller) {
      const known = readers.get(caller.tokenId);
      if (known) return known;
      policies ??= findPolicies(db, scope);
      const reader = presentReader(caller, policies);
      readers.set(caller.tokenId, reader);
      // What failed is asked for again by the next event, as the database may answer then.
      reader.catch(() => {
        if (readers.get(caller.tokenId) === reader) readers.delete(caller.tokenId);
        policies = undefined;
      });
      return reader;
    },
  };

  async function presentReader(caller: Caller, inForce: Promise<Policies>): Promise<EventReader> {
    const [present, policiesInForce] = await Promise.all([revalidate(db, caller, now()), inForce]);
    return { caller: present, policies: policiesInForce };
  }
}
