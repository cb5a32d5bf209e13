import { Button, Textarea } from "@mantine/core";
import { type ReactNode, useEffect, useRef, useState } from "react";
import {
  type EnvironmentFileDiff,
  EnvironmentFileDiff_Kind as Kind,
  EnvironmentFileDiff_PatchOmission as Omission,
} from "#gen/service/v1/environment_changes_pb.js";
import { Diff, type LineNote } from "../../../../parts/diff/Diff.tsx";
import { linesName, type PatchPlace } from "../../../../parts/diff/patch-lines.ts";
import { fileId } from "./FileTree.tsx";
import type { Comment } from "./review.ts";

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
  [Omission.LARGE]: "The file is too large to be shown by lines.",
  [Omission.SECRETS_UNKNOWN]:
    "The runner was started again and does not know all secrets to mask: the lines of this file are left out.",
  [Omission.FULL]: "The diff is too large as a whole: the lines of this file are left out.",
};

/** Most comments of a review (contract). */
const MOST_COMMENTS = 40;

interface FileDiffProps {
  readonly file: EnvironmentFileDiff;
  readonly isSplit: boolean;
  readonly comments: readonly Comment[];
  readonly onAdd: (comment: Omit<Comment, "base" | "digest">) => void;
  readonly onRemove: (comment: Comment) => void;
}

/** Shows what has changed in one file, with the comments that wait to be sent. */
export function FileDiff({ file, isSplit, comments, onAdd, onRemove }: FileDiffProps) {
  const [open, setOpen] = useState<{ readonly place: PatchPlace; readonly quote: string }>();
  // What was typed stays when other lines are chosen for it.
  const [text, setText] = useState("");
  const close = () => {
    setOpen(undefined);
    setText("");
  };
  const place = open?.place;
  const notes = notesOf(
    comments.filter((comment) => comment.path === file.path),
    onRemove,
    open && (
      <AddComment
        key={JSON.stringify(place)}
        place={open.place}
        isFull={comments.length >= MOST_COMMENTS}
        text={text}
        onChange={setText}
        onCancel={close}
        onAdd={() => {
          const { isOld, first, last } = open.place;
          onAdd({ path: file.path, isOld, line: first, lastLine: last, text, quote: open.quote });
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
      {file.patch ? (
        <Diff
          text={file.patch}
          path={file.path}
          isSplit={isSplit}
          onLines={(place, quote) => setOpen({ place, quote })}
          chosen={place}
          notes={notes}
        />
      ) : (
        <p className="dim file-none">{OMISSIONS[file.patchOmission]}</p>
      )}
    </section>
  );
}

/** Returns what is shown below the lines of a file: the comments of each, and the one that is being written. */
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
        <Button variant="subtle" size="compact-xs" onClick={() => onRemove(comment)}>
          Remove comment
        </Button>
      </div>,
    );
  }
  if (place) add(place.isOld, place.last, added);
  return [...lines.values()];
}

function AddComment({
  place,
  isFull,
  text,
  onChange,
  onAdd,
  onCancel,
}: {
  readonly place: PatchPlace;
  readonly isFull: boolean;
  readonly text: string;
  readonly onChange: (text: string) => void;
  readonly onAdd: () => void;
  readonly onCancel: () => void;
}) {
  const field = useRef<HTMLTextAreaElement>(null);
  // It has a place in the diff, without which it takes no focus, only once that is drawn with it.
  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(-1, -1);
  }, []);
  const isEmpty = text.trim() === "";
  if (isFull)
    return <p className="dim">A review has {MOST_COMMENTS} comments at most: send this one first.</p>;
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
        <Button size="xs" variant="default" onClick={onCancel}>
          Cancel
        </Button>
        <span className="dim small extra">On {linesName(place.first, place.last)}. Ctrl Enter adds it.</span>
      </div>
    </div>
  );
}
