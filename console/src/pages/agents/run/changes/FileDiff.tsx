import { Button, Textarea } from "@mantine/core";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import {
  type EnvironmentFileDiff,
  EnvironmentFileDiff_Kind as Kind,
  EnvironmentFileDiff_PatchOmission as Omission,
} from "#gen/service/v1/environment_changes_pb.js";
import { ConfirmButton } from "../../../../parts/ConfirmButton.tsx";
import { Diff, type LineNote } from "../../../../parts/diff/Diff.tsx";
import { linesName, type PatchPlace, patchLines, quoteOf } from "../../../../parts/diff/patch-lines.ts";
import { fileId } from "./FileTree.tsx";
import { DiscardComment, KeptComment } from "./KeptComment.tsx";
import type { Comment } from "./review.ts";
import { useTypedComment } from "./typed-comment.ts";

const KINDS: Readonly<Record<Kind, string>> = {
  [Kind.UNSPECIFIED]: "",
  [Kind.CHANGED]: "changed",
  [Kind.ADDED]: "added",
  [Kind.DELETED]: "deleted",
  [Kind.RENAMED]: "renamed",
};

const OMISSIONS: Readonly<Record<Omission, string>> = {
  [Omission.UNSPECIFIED]: "No line differs.",
  [Omission.BINARY]: "The file is not text.",
  [Omission.LARGE]: "The file is too large to show its lines.",
  [Omission.SECRETS_UNKNOWN]:
    "The runner was restarted and no longer knows all the secrets to mask, so the lines of this file are not shown.",
  [Omission.FULL]: "The whole diff is too large, so the lines of this file are not shown.",
};

/** Maximum comments of a review (contract). */
const MAX_COMMENTS = 40;

interface FileDiffProps {
  /** The name under which the tab keeps a comment that is being typed. */
  readonly keptAs: string;
  readonly file: EnvironmentFileDiff;
  readonly isSplit: boolean;
  readonly comments: readonly Comment[];
  readonly onAdd: (comment: Omit<Comment, "base" | "digest">) => void;
  readonly onRemove: (comment: Comment) => void;
}

/** Shows the changes of one file, with its unsent comments. */
export function FileDiff({ keptAs, file, isSplit, comments, onAdd, onRemove }: FileDiffProps) {
  const [typed, setTyped] = useTypedComment(keptAs);
  /** False for a comment that the tab has kept: reloading the page must not move the focus. */
  const [wasChosen, setChosen] = useState(false);
  const close = () => setTyped(undefined);
  const { place: chosen, quote } = typed ?? {};
  // The lines may have changed since they were chosen.
  const place = useMemo(
    () => (chosen && file.patch && quoteOf(patchLines(file.patch), chosen) === quote ? chosen : undefined),
    [file.patch, chosen, quote],
  );
  const notes = notesOf(
    comments.filter((comment) => comment.path === file.path),
    onRemove,
    typed && place && (
      <AddComment
        key={JSON.stringify(place)}
        place={place}
        takesFocus={wasChosen}
        isFull={comments.length >= MAX_COMMENTS}
        text={typed.text}
        onChange={(text) => setTyped({ ...typed, text })}
        onCancel={close}
        onAdd={() => {
          const { isOld, first, last } = place;
          const { text, quote } = typed;
          onAdd({ path: file.path, isOld, line: first, lastLine: last, text, quote });
          close();
        }}
      />
    ),
    place,
  );
  return (
    <section className="file" id={fileId(file.path)} aria-label={file.path} tabIndex={-1}>
      <div className="file-head row">
        <code>
          {file.oldPath && file.oldPath !== file.path && `${file.oldPath} → `}
          {file.path}
        </code>
        <span className="dim small">{KINDS[file.kind]}</span>
        <span className="figures small">
          <span className="tone-done">+{String(file.addedLines)}</span>{" "}
          <span className="tone-failed">−{String(file.deletedLines)}</span>
        </span>
      </div>
      {typed && typed.text !== "" && !place && (
        <div className="file-none stack">
          <p className="bar bar-asks" role="status">
            The lines you were commenting on have changed. Select other lines to continue.
          </p>
          <KeptComment text={typed.text} onDiscard={close} />
        </div>
      )}
      {file.patch ? (
        <Diff
          text={file.patch}
          path={file.path}
          isSplit={isSplit}
          // Choosing other lines keeps the typed text.
          onLines={(place, quote) => {
            setChosen(true);
            setTyped({ place, quote, text: typed?.text ?? "" });
          }}
          chosen={place}
          notes={notes}
        />
      ) : (
        <p className="dim file-none">{OMISSIONS[file.patchOmission]}</p>
      )}
    </section>
  );
}

/** Returns what is shown below the lines of a file: their comments, and the one that is being written. */
function notesOf(
  comments: readonly Comment[],
  onRemove: (comment: Comment) => void,
  added: ReactNode,
  place: PatchPlace | undefined,
): LineNote[] {
  const lines = new Map<string, { isOld: boolean; line: number; content: ReactNode[] }>();
  const add = (isOld: boolean, line: number, content: ReactNode) => {
    const key = `${isOld} ${line}`;
    const note = lines.get(key) ?? { isOld, line, content: [] };
    lines.set(key, note);
    note.content.push(content);
  };
  for (const [at, comment] of comments.entries()) {
    const { isOld, line, lastLine = line, text } = comment;
    add(
      isOld,
      lastLine,
      <div key={at} className="comment">
        <p>
          {lastLine > line && <span className="dim">{linesName(line, lastLine)}: </span>}
          {text}
        </p>
        <ConfirmButton
          label="Remove comment"
          question="Deletes this comment. It has not been sent to the agent."
          size="compact-xs"
          isSubtle
          onConfirm={() => onRemove(comment)}
        />
      </div>,
    );
  }
  if (place) add(place.isOld, place.last, added);
  return [...lines.values()];
}

function AddComment({
  place,
  takesFocus,
  isFull,
  text,
  onChange,
  onAdd,
  onCancel,
}: {
  readonly place: PatchPlace;
  readonly takesFocus: boolean;
  readonly isFull: boolean;
  readonly text: string;
  readonly onChange: (text: string) => void;
  readonly onAdd: () => void;
  readonly onCancel: () => void;
}) {
  const field = useRef<HTMLTextAreaElement>(null);
  // The field can take the focus only once the diff is rendered with a slot for it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: it takes the focus once
  useEffect(() => {
    if (!takesFocus) return;
    field.current?.focus();
    field.current?.setSelectionRange(-1, -1);
  }, []);
  const isEmpty = text.trim() === "";
  if (isFull)
    return <p className="dim">A review has {MAX_COMMENTS} comments at most: send this one first.</p>;
  return (
    <div className="stack">
      <Textarea
        aria-label="Comment"
        placeholder={`Comment on ${linesName(place.first, place.last)}`}
        ref={field}
        autosize
        minRows={2}
        maxLength={4096}
        value={text}
        onChange={(event) => onChange(event.currentTarget.value)}
        onKeyDown={({ key, ctrlKey, metaKey }) => {
          if (key === "Enter" && (ctrlKey || metaKey) && !isEmpty) onAdd();
        }}
      />
      <div className="row">
        <Button size="xs" disabled={isEmpty} onClick={onAdd}>
          Add comment
        </Button>
        {isEmpty ? (
          <Button size="xs" variant="default" onClick={onCancel}>
            Cancel
          </Button>
        ) : (
          <DiscardComment onDiscard={onCancel} />
        )}
        <span className="dim small extra">On {linesName(place.first, place.last)}. Ctrl Enter adds it.</span>
      </div>
    </div>
  );
}
