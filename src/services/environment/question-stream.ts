import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type WatchRequestsRequest,
  type WatchRequestsResponse,
  WatchRequestsResponseSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import { shuttingDown, unauthenticated } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { requireCurrentInstance } from "../../domain/runner/runner-heartbeat.ts";
import { STREAM_LIVES_MS, STREAM_SIGN_MS } from "../../domain/runner/runner-questions.ts";
import { findUnansweredQuestions, questionsFor } from "../../store/environment/environment-question.ts";
import { findStoredRunner, openQuestionStream, streamUpdate } from "../../store/runner/runner-life.ts";
import { stopsFor } from "../../store/runner/work.ts";
import { findStoppingLeases } from "../../store/runner/work-lease.ts";
import { type Reader, type Store, within } from "../../store/store.ts";
import { callerOf, streamBegunKey, writePartAsCaller } from "../call/call.ts";
import { createNotifier } from "../call/notifier.ts";
import { streamSignalOf } from "../call/revocation-monitor.ts";
import { recordHeartbeat } from "../runner/heartbeat.ts";
import type { LeaseStreams } from "../runner/lease-streams.ts";
import type { QuestionDependencies } from "./environment-question.ts";

/**
 * Streams to a runner the questions about its environments: first the unanswered ones, then each new one. It also
 * names each lease of the runner whose work is to stop, so that a stop does not wait for the next renewal. The runner's
 * row names its newest stream and the time until which that stream counts as open. From it, every server knows whether
 * the runner listens. Older streams of the runner end.
 *
 * @param streams the streams of runners on this server
 * @throws DomainError IN_USE for an instance that was replaced; UNAUTHENTICATED; UNAVAILABLE
 */
export async function* watchRequests(
  deps: QuestionDependencies,
  streams: LeaseStreams,
  { instanceId }: WatchRequestsRequest,
  ctx: HandlerContext,
): AsyncGenerator<WatchRequestsResponse> {
  const { store, now, draining } = deps;
  const caller = callerOf(ctx);
  const runnerId = caller.subject.id;
  const readRunner = async (db: Reader) => {
    const runner = await findStoredRunner(db, caller, runnerId);
    // The runner was deleted in the meantime, together with its token.
    if (!runner) throw unauthenticated();
    requireCurrentInstance(runner, instanceId);
    return runner;
  };
  await recordHeartbeat(deps, ctx);
  const streamId = await writePartAsCaller(store, ctx, async (tx) => {
    await readRunner(tx.db);
    // Ends the runner's earlier stream, on whichever server it is open.
    tx.touch(questionsFor(runnerId));
    return openQuestionStream(tx, caller, runnerId, tx.now + STREAM_LIVES_MS);
  });
  const ended = streamSignalOf(ctx);
  const { replaced, close } = streams(runnerId);
  const wakers = [ended, draining, replaced];
  const notifier = createNotifier((wake) => {
    const ends = [questionsFor(runnerId), stopsFor(runnerId)].map((topic) => store.onChange(topic, wake));
    return () => {
      for (const end of ends) end();
    };
  }, wakers);
  const sent = new Set<string>();
  const stopping = new Set<string>();
  let signAt = now() + STREAM_SIGN_MS;
  try {
    for (;;) {
      const changed = notifier.next(Math.max(0, signAt - now()));
      ended.throwIfAborted();
      if (draining.aborted) throw shuttingDown();
      if (replaced.aborted || (await readRunner(store.reader)).questionsStream !== streamId) return;
      ctx.values.get(streamBegunKey)();
      const [questions, stops] = await Promise.all([
        findUnansweredQuestions(store.reader, caller, runnerId, now()),
        findStoppingLeases(store.reader, caller, runnerId),
      ]);
      const leaseIds = stops.filter((id) => !stopping.has(id));
      if (leaseIds.length > 0) yield create(WatchRequestsResponseSchema, { leaseIds });
      replaceAll(stopping, stops);
      for (const question of questions) {
        if (sent.has(question.id)) continue;
        sent.add(question.id);
        yield create(WatchRequestsResponseSchema, { question });
      }
      replaceAll(
        sent,
        questions.map(({ id }) => id),
      );
      if (now() >= signAt) {
        signAt = now() + STREAM_SIGN_MS;
        await setOpenUntil(store, caller, streamId, now() + STREAM_LIVES_MS);
        yield create(WatchRequestsResponseSchema);
      }
      await changed;
    }
  } finally {
    notifier.close();
    close();
    // If this fails, the stream counts as open for a little longer.
    await setOpenUntil(store, caller, streamId, 0).catch(() => undefined);
  }
}

function replaceAll(set: Set<string>, ids: readonly string[]): void {
  set.clear();
  for (const id of ids) set.add(id);
}

/** Sets the time until which a stream counts as open, unless a newer stream was opened. */
function setOpenUntil(store: Store, caller: Caller, streamId: string, until: number): Promise<void> {
  const id = caller.subject.id;
  return store.touchAll((db) => streamUpdate(db, caller, { id, streamId, until }), within(caller));
}
