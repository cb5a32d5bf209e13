import { VisuallyHidden } from "@mantine/core";
import { useMemo } from "react";
import type { EnvironmentFileDiff } from "#gen/service/v1/environment_changes_pb.js";
import { type TreeNode, treeOf } from "./file-tree.ts";

type Node = TreeNode<EnvironmentFileDiff>;

interface FileTreeProps {
  readonly files: readonly EnvironmentFileDiff[];
  /** Number of unsent comments of each file, by path. */
  readonly comments: ReadonlyMap<string, number>;
}

/** Returns the id of the element that shows a file. */
export const fileId = (path: string): string => `file ${path}`;

/** Shows the files of a diff as a tree of folders, each with its number of changed lines, as a link to them. */
export function FileTree({ files, comments }: FileTreeProps) {
  const nodes = useMemo(() => treeOf(files), [files]);
  return (
    <nav className="changes-files" aria-label="Files">
      <Nodes nodes={nodes} comments={comments} />
    </nav>
  );
}

function Nodes({ nodes, comments }: { readonly nodes: readonly Node[] } & Pick<FileTreeProps, "comments">) {
  return (
    <ul>
      {nodes.map((node) => (
        <li key={`${node.kind} ${node.path}`}>
          {node.kind === "file" ? (
            <FileLine file={node.file} name={node.name} comments={comments.get(node.path) ?? 0} />
          ) : (
            <details open>
              <summary className="cut" title={node.path}>
                {node.name}
              </summary>
              <Nodes nodes={node.nodes} comments={comments} />
            </details>
          )}
        </li>
      ))}
    </ul>
  );
}

function FileLine({
  file: { path, addedLines, deletedLines },
  name,
  comments,
}: {
  readonly file: EnvironmentFileDiff;
  readonly name: string;
  readonly comments: number;
}) {
  return (
    <button type="button" title={path} onClick={() => goTo(path)}>
      <span className="cut">{name}</span>
      <span className="figures small">
        {comments > 0 && (
          <span className="count">
            {comments}
            <VisuallyHidden component="span"> {comments === 1 ? "comment" : "comments"}</VisuallyHidden>
          </span>
        )}{" "}
        <span className="tone-done">+{String(addedLines)}</span>{" "}
        <span className="tone-failed">−{String(deletedLines)}</span>
      </span>
    </button>
  );
}

/** Scrolls to a file and moves the keyboard focus there. */
function goTo(path: string): void {
  const file = document.getElementById(fileId(path));
  file?.scrollIntoView();
  file?.focus({ preventScroll: true });
}
