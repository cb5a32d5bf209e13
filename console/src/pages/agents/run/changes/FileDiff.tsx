import { Button, Textarea } from "@mantine/core";
import { useState } from "react";
import {
  type EnvironmentFileDiff,
  EnvironmentFileDiff_Kind as Kind,
  EnvironmentFileDiff_PatchOmission as Omission,
} from "#gen/service/v1/environment_changes_pb.js";
import { Patch } from "../Patch.tsx";
import type { PatchLine } from "../patch-lines.ts";
import { fileId } from "./FileTree.tsx";
import { type Comment, placeOf } from "./review.ts";

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
  const [open, setOpen] = useState<PatchLine>();
  const isAt = (comment: Comment, line: PatchLine) => {
    const place = placeOf(line);
    return comment.path === file.path && comment.line === place.line && comment.isOld === place.isOld;
  };
  const below = (line: PatchLine, columns: number) => {
    if (line.kind === "hunk") return null;
    const here = comments.filter((comment) => isAt(comment, line));
    const isOpen = open !== undefined && open.old === line.old && open.new === line.new;
    if (here.length === 0 && !isOpen) return null;
    return (
      <tr>
        <td colSpan={columns} className="patch-comments">
          {here.map((comment, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: two comments of a line may say the same
            <div key={at} className="comment">
              <p>{comment.text}</p>
              <Button variant="subtle" size="compact-xs" onClick={() => onRemove(comment)}>
                Remove comment
              </Button>
            </div>
          ))}
          {isOpen && (
            <AddComment
              line={line.new ?? line.old ?? 0}
              isFull={comments.length >= MOST_COMMENTS}
              onCancel={() => setOpen(undefined)}
              onAdd={(text) => {
                onAdd({ path: file.path, ...placeOf(line), text, quote: line.text });
                setOpen(undefined);
              }}
            />
          )}
        </td>
      </tr>
    );
  };
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
        <Patch text={file.patch} onLine={setOpen} below={below} isSplit={isSplit} />
      ) : (
        <p className="dim file-none">{OMISSIONS[file.patchOmission]}</p>
      )}
    </section>
  );
}

function AddComment({
  line,
  isFull,
  onAdd,
  onCancel,
}: {
  readonly line: number;
  readonly isFull: boolean;
  readonly onAdd: (text: string) => void;
  readonly onCancel: () => void;
}) {
  const [text, setText] = useState("");
  if (isFull)
    return <p className="dim">A review has {MOST_COMMENTS} comments at most: send this one first.</p>;
  return (
    <div className="stack">
      <Textarea
        aria-label="Comment"
        placeholder={`Comment on line ${line}`}
        autoFocus
        autosize
        minRows={2}
        maxLength={4096}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <div className="row">
        <Button size="xs" disabled={text.trim() === ""} onClick={() => onAdd(text)}>
          Add comment
        </Button>
        <Button size="xs" variant="default" onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </div>
  );
}
