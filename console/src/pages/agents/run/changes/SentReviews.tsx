import { useInfiniteQuery } from "@connectrpc/connect-query";
import type { AgentInput } from "#gen/service/v1/agent_pb.js";
import {
  type AgentReviewComment,
  AgentReviewComment_State as PresentState,
} from "#gen/service/v1/agent_review_pb.js";
import { AgentReviewService } from "#gen/service/v1/agent_review_service_pb.js";
import { BY_PAGE, FIRST_PAGE } from "../../../../api/pages.ts";
import { Who } from "../../../../api/person.tsx";
import { Problem } from "../../../../parts/Problem.tsx";
import { State } from "../../../../parts/State.tsx";
import { Ago } from "../../../../parts/Time.tsx";

/** Shows the reviews that were sent to a run. Each comment has the current state of its lines. */
export function SentReviews({ runId }: { readonly runId: string }) {
  const reviews = useInfiniteQuery(
    AgentReviewService.method.listAgentReviews,
    { ...FIRST_PAGE, agentExecutionId: runId },
    BY_PAGE,
  );
  const rows = reviews.data?.pages.flatMap((page) => page.reviews) ?? [];
  if (reviews.error) return <Problem error={reviews.error} onRetry={() => void reviews.refetch()} />;
  if (rows.length === 0) return null;
  return (
    <section className="card" aria-label="Sent reviews">
      <h2>Sent reviews</h2>
      {rows.map((input) => (
        <Sent key={input.id} input={input} />
      ))}
      {reviews.hasNextPage && (
        <button type="button" className="linklike" onClick={() => void reviews.fetchNextPage()}>
          Show more
        </button>
      )}
    </section>
  );
}

function Sent({ input: { input, sender, createdAt } }: { readonly input: AgentInput }) {
  const parts = input.case === "userInput" ? input.value.inputs : [];
  const review = parts.map((part) => part.input).find((part) => part.case === "review")?.value;
  return (
    <div className="stack">
      <div className="row small dim">
        <strong>
          <Who subject={sender} />
        </strong>
        <Ago at={createdAt} />
      </div>
      {review?.summary && <p>{review.summary}</p>}
      {review?.comments.map((comment, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a sent review never changes, and may say the same twice
        <div key={at} className="comment">
          <div className="row small">
            <code>
              {comment.path}:{comment.firstLine}
            </code>
            <Mark comment={comment} />
          </div>
          {comment.quote?.lines.map((line, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a quote never changes
            <code key={at} className="block dim">
              {line}
            </code>
          ))}
          <p>{comment.text}</p>
        </div>
      ))}
    </div>
  );
}

function Mark({ comment: { present } }: { readonly comment: AgentReviewComment }) {
  if (present?.state === PresentState.OUTDATED) return <State tone="stopped" word="Outdated" />;
  if (present?.state === PresentState.MOVED)
    return <State tone="waiting" word={`Now at ${present.path}:${present.firstLine}`} />;
  return null;
}
