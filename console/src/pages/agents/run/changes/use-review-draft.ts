import { Code, ConnectError } from "@connectrpc/connect";
import { createConnectQueryKey, useMutation, useQuery } from "@connectrpc/connect-query";
import { useEffect, useRef, useState } from "react";
import type { AgentReviewDraft } from "#gen/service/v1/agent_review_pb.js";
import { AgentReviewService } from "#gen/service/v1/agent_review_service_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { queries } from "../../../../api/server.tsx";
import { signInAgain, useValue } from "../../../../api/session.ts";
import { refreshInputs } from "../use-run.ts";
import { type Comment, commentOf, sentComment } from "./review.ts";

/** Milliseconds without a key press before a summary is saved. */
const KEEP_MS = 400;

/** The cached reviews that were sent. */
const SENT = createConnectQueryKey({
  schema: AgentReviewService.method.listAgentReviews,
  cardinality: "infinite",
});

/** A review that has not been sent. */
interface Content {
  readonly summary: string;
  readonly comments: readonly Comment[];
}

const EMPTY: Content = { summary: "", comments: [] };
/** Saves in flight of pages that were left, by run. */
const leaving = new Map<string, Promise<unknown>>();
const isEmpty = ({ summary, comments }: Content) => summary === "" && comments.length === 0;

/** Holds the review that somebody writes. The server keeps it as a draft, so it outlives the page. */
export function useReviewDraft(runId: string) {
  const [content, setContent] = useState(EMPTY);
  const [problem, setProblem] = useState<unknown>();
  const [isSending, setSending] = useState(false);
  const [isSent, setSent] = useState(false);
  const newest = useRef(EMPTY);
  const kept = useRef<Pick<AgentReviewDraft, "id" | "revision">>(undefined);
  const saves = useRef(Promise.resolve(true));
  const timer = useRef<number>(undefined);
  const [isSettled, setSettled] = useState(!leaving.has(runId));
  useEffect(() => {
    // A save of the page that was left may have finished by now.
    void Promise.resolve(leaving.get(runId)).then(() => setSettled(true));
  }, [runId]);
  const create = useMutation(AgentReviewService.method.createAgentReviewDraft);
  const update = useMutation(AgentReviewService.method.updateAgentReviewDraft);
  const remove = useMutation(AgentReviewService.method.deleteAgentReviewDraft);
  const send = useMutation(AgentService.method.sendToAgentExecution);
  const { data, isFetchedAfterMount } = useQuery(
    AgentReviewService.method.listAgentReviewDrafts,
    { agentExecutionId: runId, pagination: { pageSize: 1 } },
    // A person who may not send to the run has no draft.
    {
      enabled: isSettled,
      staleTime: 0,
      gcTime: 0,
      refetchOnWindowFocus: false,
      refetchInterval: false,
      retry: false,
    },
  );
  const show = (next: Content) => {
    newest.current = next;
    setContent(next);
  };
  const found = isFetchedAfterMount ? data?.drafts[0] : undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is found once is where it goes on
  useEffect(() => {
    if (!found || kept.current || !isEmpty(newest.current)) return;
    kept.current = found;
    show({ summary: found.summary, comments: found.comments.map(commentOf) });
  }, [found]);

  /** Saves the newest content after the save in flight. @returns whether it is saved */
  const keep = (): Promise<boolean> => {
    window.clearTimeout(timer.current);
    timer.current = undefined;
    const save = async () => {
      const { summary, comments } = newest.current;
      const before = kept.current;
      if (isEmpty(newest.current)) {
        if (before) await remove.mutateAsync({ draftId: before.id });
        kept.current = undefined;
        return;
      }
      const body = { summary, comments: comments.map(sentComment) };
      const made = () => create.mutateAsync({ agentExecutionId: runId, ...body });
      const { draft } = before
        ? await update
            .mutateAsync({ draftId: before.id, revision: before.revision, ...body })
            // It was sent or discarded on another page, but is still being written here.
            .catch((error) => {
              if (ConnectError.from(error).code === Code.NotFound) return made();
              throw error;
            })
        : await made();
      kept.current = draft;
    };
    saves.current = saves.current.then(save).then(
      () => {
        setProblem(undefined);
        return true;
      },
      (error) => {
        setProblem(error);
        return false;
      },
    );
    return saves.current;
  };
  const isRefused = useValue(signInAgain);
  // Saves again what could not be saved while nobody was signed in.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the session has come back
  useEffect(() => {
    if (!isRefused && problem !== undefined && !isSending) void keep();
  }, [isRefused]);
  const leave = useRef(keep);
  leave.current = keep;
  // Saves what a person typed last before leaving the page.
  useEffect(
    () => () => {
      const last = timer.current === undefined ? saves.current : leave.current();
      leaving.set(runId, last);
      void last.then(() => leaving.get(runId) === last && leaving.delete(runId));
    },
    [runId],
  );

  const change = (next: Content) => {
    show(next);
    void keep();
  };
  return {
    ...content,
    problem,
    isSending,
    /** True from sending until another review begins or the notice is dismissed. */
    isSent: isSent && isEmpty(content),
    forgetSent: () => setSent(false),
    add: (comment: Comment) => change({ ...newest.current, comments: [...newest.current.comments, comment] }),
    remove: (comment: Comment) =>
      change({ ...newest.current, comments: newest.current.comments.filter((each) => each !== comment) }),
    discard: () => change(EMPTY),
    setSummary(summary: string) {
      show({ ...newest.current, summary });
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(() => void keep(), KEEP_MS);
    },
    async send() {
      setSending(true);
      setSent(false);
      // An older draft is not what its author sees and sends.
      if (!(await keep()) && kept.current) return setSending(false);
      const { summary, comments } = newest.current;
      const draft = kept.current;
      const value = draft
        ? { draftId: draft.id, draftRevision: draft.revision }
        : { summary, comments: comments.map(sentComment) };
      try {
        const inputs = [{ input: { case: "review" as const, value } }];
        await send.mutateAsync({ agentExecutionId: runId, input: { case: "userInput", value: { inputs } } });
        kept.current = undefined;
        show(EMPTY);
        setSent(true);
      } catch (error) {
        setProblem(error);
      } finally {
        setSending(false);
        // The review appears among the sent ones immediately.
        await Promise.all([refreshInputs(runId), queries.invalidateQueries({ queryKey: SENT })]);
      }
    },
  };
}
