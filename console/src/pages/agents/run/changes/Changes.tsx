import { Button, NativeSelect, Textarea } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { DiffBase } from "#gen/service/v1/environment_changes_pb.js";
import { ConfirmButton } from "../../../../parts/ConfirmButton.tsx";
import { Loaded } from "../../../../parts/Loaded.tsx";
import { Empty } from "../../../../parts/Page.tsx";
import { Problem } from "../../../../parts/Problem.tsx";
import { State } from "../../../../parts/State.tsx";
import { Ago } from "../../../../parts/Time.tsx";
import { FileDiff } from "./FileDiff.tsx";
import { FileTree } from "./FileTree.tsx";
import { OfGoneFiles } from "./OfGoneFiles.tsx";
import { PushBranch } from "./PushBranch.tsx";
import type { Comment } from "./review.ts";
import { SentReviews } from "./SentReviews.tsx";
import { useReviewDraft } from "./use-review-draft.ts";
import { useShownDiff } from "./use-shown-diff.ts";

/** Windows wide enough for two columns of lines; in others they are below each other. */
const SPLIT_WIDTH = "(min-width: 600px)";

interface ChangesProps {
  readonly runId: string;
  readonly environmentId: string;
  /** True while the agent works on a turn, which the diff does not contain yet. */
  readonly isWorking: boolean;
  /** The digest of the newest diff since the checkout, as the run's stream reports it. */
  readonly streamed: string;
  /** Increases with each report of the runner that changes one of the run's diffs. */
  readonly version: string;
}

/** Shows what a run changed: its files and lines. Comments on them are sent as one review. */
export function Changes({ runId, environmentId, isWorking, streamed, version }: ChangesProps) {
  const { base } = useSearch({ from: "/agents/$runId" });
  const review = useReviewDraft(runId);
  // The key resets all state when the base of the comparison changes.
  return (
    <Diff
      key={base ?? ""}
      runId={runId}
      environmentId={environmentId}
      base={base === "turn" ? DiffBase.LAST_TURN : DiffBase.ENVIRONMENT}
      review={review}
      isWorking={isWorking}
      // The diff of the last turn may change without the other, such as by a turn that changes nothing.
      streamed={base === "turn" ? `${streamed} ${version}` : streamed}
    />
  );
}

interface DiffProps extends Omit<ChangesProps, "version"> {
  readonly base: DiffBase;
  readonly review: ReturnType<typeof useReviewDraft>;
}

function Diff({ runId, environmentId, base, review, isWorking, streamed }: DiffProps) {
  const { diff: shownAs } = useSearch({ from: "/agents/$runId" });
  const hasRoom = useMediaQuery(SPLIT_WIDTH, undefined, { getInitialValueInEffect: false });
  const isSplit = shownAs === "split" && hasRoom === true;
  const { reading, pages, digest, isBehind, show, isOfAnother } = useShownDiff(environmentId, base, streamed);
  const comments = review.comments.filter((comment) => comment.base === base);
  const byFile = new Map<string, number>();
  for (const { path } of comments) byFile.set(path, (byFile.get(path) ?? 0) + 1);
  const add = (comment: Omit<Comment, "base" | "digest">) => review.add({ ...comment, base, digest });
  const files = useMemo(() => pages?.flatMap((page) => page.files) ?? [], [pages]);
  // The tab keeps a typed comment by run, base of the comparison, and file.
  const keptAs = `comment ${runId} ${base} `;
  const leftOut = pages?.[0]?.filesLeftOut ?? 0;
  return (
    <Loaded reading={{ ...reading, data: pages }} lines={6}>
      {(shown) => (
        <div className={isBehind ? "stack behind" : "stack"}>
          <div className="row">
            <ComparedWith base={base} />
            {hasRoom && (
              <Link
                to="."
                search={(before: Record<string, unknown>) => ({
                  ...before,
                  diff: isSplit ? undefined : "split",
                })}
                replace
                resetScroll={false}
              >
                {isSplit ? "Show unified" : "Show split"}
              </Link>
            )}
            <span className="dim">
              {files.length} {files.length === 1 ? "file" : "files"}, read <Ago at={shown[0]?.refreshedAt} />
            </span>
            <span className="dim">
              digest <code title={digest}>{digest.slice(0, 12)}</code>
            </span>
          </div>
          {isBehind && (
            <div className="bar bar-news row" role="status">
              A newer diff is available. This one stays until you load it.
              <Button size="compact-xs" onClick={show}>
                Show newer diff
              </Button>
            </div>
          )}
          {isOfAnother && !isBehind && (
            <div className="bar bar-asks row" role="status">
              This link refers to an earlier diff, which is no longer kept. This is the newest one.
              <Button size="compact-xs" variant="default" onClick={show}>
                Use this one
              </Button>
            </div>
          )}
          {isWorking && (
            <p className="bar" role="status">
              The agent is working. Its changes appear here a few seconds after its turn.
            </p>
          )}
          {files.length > 0 && (
            <p className="dim small">
              Click a line number to comment on the line, or drag to select several. With the keyboard, use
              the arrow keys to move between line numbers, Shift to select several, and Enter to comment.
              Comments are sent together as one review.
            </p>
          )}
          {comments.some((comment) => comment.digest !== digest) && (
            <p className="bar bar-asks" role="status">
              The diff has changed since you wrote some of the comments. They are sent with the lines that you
              saw.
            </p>
          )}
          {files.length === 0 && (
            <Empty title="Nothing has changed.">
              <p>
                After each turn of the agent, the runner compares the files with the checkout. Differences
                appear here.
              </p>
            </Empty>
          )}
          <div className="changes">
            {files.length > 0 && <FileTree files={files} comments={byFile} />}
            <div className="stack">
              {files.map((file) => (
                <FileDiff
                  key={file.path}
                  keptAs={keptAs + file.path}
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
              {reading.hasNextPage && !isBehind && (
                <Button
                  variant="default"
                  size="xs"
                  onClick={() => void reading.fetchNextPage()}
                  loading={reading.isFetchingNextPage}
                >
                  Show more
                </Button>
              )}
            </div>
          </div>
          {files.length > 0 && <PushBranch runId={runId} environmentId={environmentId} />}
          <SentReviews runId={runId} />
          {(review.comments.length > 0 || review.summary !== "") && <SendReview review={review} />}
          {shown.length > 0 && !reading.hasNextPage && <OfGoneFiles keptAs={keptAs} files={files} />}
          {review.isSent && <ReviewSent onClose={review.forgetSent} />}
        </div>
      )}
    </Loaded>
  );
}

/** Chooses what the working tree is compared with; the choice is in the address. */
function ComparedWith({ base }: { readonly base: DiffBase }) {
  const navigate = useNavigate({ from: "/agents/$runId" });
  return (
    <NativeSelect
      aria-label="Compared with"
      size="xs"
      value={base === DiffBase.LAST_TURN ? "turn" : ""}
      onChange={(event) => {
        const chosen = event.currentTarget.value || undefined;
        void navigate({
          search: (before) => ({ ...before, base: chosen, digest: undefined }),
          replace: true,
          resetScroll: false,
        });
      }}
      data={[
        { value: "", label: "Since the checkout" },
        { value: "turn", label: "Since the last turn" },
      ]}
    />
  );
}

/** Says that the review was sent, in its place, and leads to the agent's response. */
function ReviewSent({ onClose }: { readonly onClose: () => void }) {
  return (
    <div className="card review" role="status">
      <div className="row">
        <State tone="done" word="The review was sent to the agent." />
        <Link to="." search={{}}>
          See what it says
        </Link>
        <Button variant="default" size="compact-xs" onClick={onClose}>
          Close
        </Button>
      </div>
    </div>
  );
}

/** Describes the content of a review before it is deleted. */
function discarded(comments: number, summary: string): string {
  const parts = [
    comments > 0 && (comments === 1 ? "1 comment" : `${comments} comments`),
    summary !== "" && "the summary",
  ];
  return parts.filter(Boolean).join(" and ");
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
        // Read-only while sending, because a success clears the field.
        readOnly={isSending}
        onChange={(event) => review.setSummary(event.currentTarget.value)}
        onKeyDown={({ key, ctrlKey, metaKey }) => {
          if (key === "Enter" && (ctrlKey || metaKey) && !isSending) void review.send();
        }}
      />
      <div className="row">
        <Button loading={isSending} onClick={() => void review.send()}>
          Send to agent
        </Button>
        <ConfirmButton
          label="Discard review"
          question={`Deletes ${discarded(comments.length, summary)}. None of it has been sent.`}
          size="sm"
          isSubtle
          disabled={isSending}
          onConfirm={review.discard}
        />
        <span className="dim small extra">Ctrl+Enter sends it.</span>
      </div>
    </section>
  );
}
