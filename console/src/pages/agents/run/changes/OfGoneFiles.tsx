import { useState } from "react";
import { keepTyped, typedNames } from "../../../../api/typed.ts";
import { KeptComment } from "./KeptComment.tsx";
import { readTypedComment } from "./typed-comment.ts";

interface OfGoneFilesProps {
  /** Prefix of the names under which the tab keeps comments of this diff. */
  readonly keptAs: string;
  /** All files of the diff. */
  readonly files: readonly { readonly path: string }[];
}

/** Shows unfinished comments on files that the diff no longer has. */
export function OfGoneFiles({ keptAs, files }: OfGoneFilesProps) {
  const [, setDiscarded] = useState(0);
  const there = new Set(files.map(({ path }) => path));
  const gone = typedNames(keptAs)
    .map((name) => ({ name, path: name.slice(keptAs.length), text: readTypedComment(name)?.text }))
    .filter(({ path, text }) => !there.has(path) && text !== undefined);
  return gone.map(({ name, path, text = "" }) => (
    <section key={name} className="card stack" aria-label={`Comment on ${path}`}>
      <p className="bar bar-asks">
        <code>{path}</code>, on which you were commenting, no longer differs.
      </p>
      <KeptComment
        text={text}
        onDiscard={() => {
          keepTyped(name, "");
          setDiscarded((count) => count + 1);
        }}
      />
    </section>
  ));
}
