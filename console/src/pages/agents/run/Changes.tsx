import { useInfiniteQuery } from "@connectrpc/connect-query";
import { Button, NativeSelect, Textarea } from "@mantine/core";
import { Link, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { DiffBase } from "#gen/service/v1/environment_changes_pb.js";
import { EnvironmentService } from "#gen/service/v1/environment_service_pb.js";
import { Loaded } from "../../../parts/Loaded.tsx";
import { Empty } from "../../../parts/Page.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { Ago } from "../../../parts/Time.tsx";
import { FileDiff } from "./FileDiff.tsx";
import { PushBranch } from "./PushBranch.tsx";
import type { Comment } from "./review.ts";
import { SentReviews } from "./SentReviews.tsx";
import { useReviewDraft } from "./use-review-draft.ts";

const PAGE = 100;

interface ChangesProps {
  readonly runId: string;
  readonly environmentId: string;
  /** True while the agent works, whose turn the diff does not know yet. */
  readonly isWorking: boolean;
}

/** What a run changed: its files and their lines, on which comments are made and sent as one review. */
export function Changes({ runId, environmentId, isWorking }: ChangesProps) {
  const [base, setBase] = useState(DiffBase.ENVIRONMENT);
  const { diff: shownAs } = useSearch({ from: "/agents/$runId" });
  const isSplit = shownAs === "split";
  const review = useReviewDraft(runId);
  const { comments } = review;
  const diff = useInfiniteQuery(
    EnvironmentService.method.getEnvironmentDiff,
    { environmentId, base, pagination: { pageSize: PAGE } },
    {
      pageParamKey: "pagination",
      getNextPageParam: ({ pagination }) =>
        pagination?.nextToken ? { pageSize: PAGE, token: pagination.nextToken } : undefined,
    },
  );
  return (
    <Loaded reading={diff} lines={6}>
      {({ pages }) => {
        const files = pages.flatMap(({ files }) => files);
        const [first] = pages;
        const digest = first?.digest ?? "";
        const leftOut = first?.filesLeftOut ?? 0;
        const add = (comment: Omit<Comment, "base" | "digest">) => review.add({ ...comment, base, digest });
        return (
          <div className="stack">
            <div className="row">
              <NativeSelect
                aria-label="Compared with"
                size="xs"
                value={String(base)}
                onChange={(event) => setBase(Number(event.currentTarget.value) as DiffBase)}
                data={[
                  { value: String(DiffBase.ENVIRONMENT), label: "Since the checkout" },
                  { value: String(DiffBase.LAST_TURN), label: "Since the last turn" },
                ]}
              />
              <Link
                to="."
                search={(before: Record<string, unknown>) => ({
                  ...before,
                  diff: isSplit ? undefined : "split",
                })}
                replace
              >
                {isSplit ? "Show unified" : "Show split"}
              </Link>
              <span className="dim">
                {files.length} {files.length === 1 ? "file" : "files"}, looked at{" "}
                <Ago at={first?.refreshedAt} />
              </span>
            </div>
            {isWorking && (
              <p className="bar" role="status">
                The agent works: what it changes now appears here some seconds after its turn.
              </p>
            )}
            {files.length > 0 && (
              <p className="dim small">Choose the sign before a line (+, − or ·) to comment on the line.</p>
            )}
            {comments.some((comment) => comment.digest !== digest) && (
              <p className="bar bar-asks" role="status">
                The diff has changed since you made some of the comments: they are sent with the lines that
                you saw.
              </p>
            )}
            {files.length === 0 && (
              <Empty title="Nothing has changed.">
                <p>
                  The runner looks after each turn of the agent. What differs from the checkout appears here.
                </p>
              </Empty>
            )}
            <div className="changes">
              {files.length > 1 && (
                <nav className="changes-files" aria-label="Files">
                  {files.map(({ path, addedLines, deletedLines }) => (
                    <button
                      type="button"
                      key={path}
                      onClick={() => document.getElementById(`file ${path}`)?.scrollIntoView()}
                    >
                      <span className="cut">{path}</span>
                      <span className="figures small">
                        <span className="tone-done">+{String(addedLines)}</span>{" "}
                        <span className="tone-failed">−{String(deletedLines)}</span>
                      </span>
                    </button>
                  ))}
                </nav>
              )}
              <div className="stack">
                {files.map((file) => (
                  <FileDiff
                    key={file.path}
                    file={file}
                    isSplit={isSplit}
                    comments={comments}
                    onAdd={add}
                    onRemove={review.remove}
                  />
                ))}
                {leftOut > 0 && (
                  <p className="dim">{leftOut} more files have changed; they are too many to show.</p>
                )}
                {diff.hasNextPage && (
                  <Button
                    variant="default"
                    size="xs"
                    onClick={() => void diff.fetchNextPage()}
                    loading={diff.isFetchingNextPage}
                  >
                    Show more
                  </Button>
                )}
              </div>
            </div>
            {files.length > 0 && <PushBranch runId={runId} environmentId={environmentId} />}
            <SentReviews runId={runId} />
            {(comments.length > 0 || review.summary !== "") && <SendReview review={review} />}
          </div>
        );
      }}
    </Loaded>
  );
}

/** Sends the comments as one message, with a summary before them. */
function SendReview({ review }: { readonly review: ReturnType<typeof useReviewDraft> }) {
  const { comments, summary, problem, isSending } = review;
  return (
    <section className="card review" aria-label="Review">
      <h2>
        Review with {comments.length} {comments.length === 1 ? "comment" : "comments"}
      </h2>
      <Problem error={problem} />
      <Textarea
        label="Summary"
        autosize
        minRows={2}
        maxLength={8192}
        value={summary}
        onChange={(event) => review.setSummary(event.currentTarget.value)}
      />
      <div className="row">
        <Button loading={isSending} onClick={() => void review.send()}>
          Send to agent
        </Button>
        <Button variant="subtle" onClick={review.discard}>
          Discard review
        </Button>
      </div>
    </section>
  );
}
