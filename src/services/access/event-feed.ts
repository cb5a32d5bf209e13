import { isOfAgentExecution } from "../../domain/access/event-reading.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import type { Policies } from "../../domain/policy/policies.ts";
import type { EventDescription } from "../../domain/record/event-filter.ts";
import { findExecutionOfEvent } from "../../store/access/event-execution.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { type EventPage, findEventsAfter } from "../../store/record/event.ts";
import type { Scope, Store } from "../../store/store.ts";
import { eventsOf, rightsOf } from "../../store/topics.ts";
import { revalidate } from "../call/authenticated-caller.ts";
import { findSharingGroups, isSharedWith } from "../policy/shared-role.ts";

/** Maximum number of events per page. Streams that read from the same position share a page. */
export const EVENTS_PER_READ = 100;

/** Maximum number of agent executions for which a reader caches whether they are shared with it. */
const KNOWN_EXECUTIONS = 100;

/** The current rights of a reader of events. */
export interface EventReader {
  /** The caller with its current role. */
  readonly caller: Caller;
  readonly policies: Policies;
  /** Returns whether an event is about an agent execution that is shared with a group of the caller. */
  mayReadShared(event: EventDescription): Promise<boolean>;
}

/** The source of events that all streams of one organization share. */
export interface EventFeed {
  /** Calls `wake` after each commit that adds events. Returns the function that unsubscribes. */
  subscribe(wake: () => void): () => void;
  /**
   * Returns the page of events after a sequence number. Concurrent calls share one query.
   * @param isCatchingUp true for a stream that may be far behind
   */
  read(after: number, isCatchingUp: boolean): Promise<EventPage>;
  /**
   * Returns the current rights of a caller. They are cached until rights in the organization change, so that a stream
   * can check them before each event.
   *
   * @throws DomainError UNAUTHENTICATED or ACCOUNT_BLOCKED for a token that is no longer valid
   */
  readerOf(caller: Caller): Promise<EventReader>;
}

/** Returns the feed of an organization, the same for all its open streams. */
export type EventFeeds = (scope: Scope) => EventFeed;

type FeedStore = Pick<Store, "reader" | "longReader" | "onChange">;

export function createEventFeeds(store: FeedStore, now: () => number): EventFeeds {
  const feeds = new Map<string, EventFeed>();
  return ({ organizationId }) => {
    const known = feeds.get(organizationId);
    if (known) return known;
    const feed = createFeed(store, now, { organizationId }, () => feeds.delete(organizationId));
    feeds.set(organizationId, feed);
    return feed;
  };
}

/** @param onEmpty called when the last stream has unsubscribed */
function createFeed(
  { reader: db, longReader, onChange }: FeedStore,
  now: () => number,
  scope: Scope,
  onEmpty: () => void,
): EventFeed {
  const streams = new Set<() => void>();
  const pages = new Map<number, Promise<EventPage>>();
  const readers = new Map<string, Promise<EventReader>>();
  let policies: Promise<Policies> | undefined;
  const wakeAll = () => {
    pages.clear();
    for (const wake of [...streams]) wake();
  };
  const invalidateRights = () => {
    readers.clear();
    policies = undefined;
  };
  let unsubscribe: (() => void)[] = [];
  return {
    subscribe(wake) {
      // Registered first: a woken stream must not see rights that were cached before the change.
      if (streams.size === 0) {
        unsubscribe = [onChange(rightsOf(scope), invalidateRights), onChange(eventsOf(scope), wakeAll)];
      }
      streams.add(wake);
      return () => {
        if (!streams.delete(wake) || streams.size > 0) return;
        for (const end of unsubscribe) end();
        unsubscribe = [];
        onEmpty();
      };
    },
    read(after, isCatchingUp) {
      const known = pages.get(after);
      if (known) return known;
      const page = findEventsAfter(isCatchingUp ? longReader : db, scope, after, EVENTS_PER_READ);
      pages.set(after, page);
      // Cached for one turn of the event loop, in which the woken streams read; longer would cost memory.
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
      // A failure is not cached: the next event tries again.
      reader.catch(() => {
        if (readers.get(caller.tokenId) === reader) readers.delete(caller.tokenId);
        policies = undefined;
      });
      return reader;
    },
  };

  async function presentReader(caller: Caller, effective: Promise<Policies>): Promise<EventReader> {
    const [present, policiesInForce] = await Promise.all([revalidate(db, caller, now()), effective]);
    const hasShared = (await findSharingGroups(db, present, policiesInForce)).length > 0;
    const known = new Map<string, Promise<boolean>>();
    return {
      caller: present,
      policies: policiesInForce,
      async mayReadShared(event) {
        if (!hasShared || !isOfAgentExecution(event)) return false;
        const executionId = await findExecutionOfEvent(db, scope, event);
        if (executionId === undefined) return false;
        const answer = known.get(executionId) ?? isSharedWith(db, present, policiesInForce, executionId);
        // One execution has many events. The oldest entries are evicted.
        known.delete(executionId);
        known.set(executionId, answer);
        const [oldest] = known.keys();
        if (known.size > KNOWN_EXECUTIONS && oldest !== undefined) known.delete(oldest);
        return answer;
      },
    };
  }
}
