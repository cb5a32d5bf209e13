import { Fragment, type ReactNode, useMemo } from "react";
import { type PatchLine, patchLines } from "./patch-lines.ts";

interface PatchProps {
  readonly text: string;
  /** Called with the line that somebody wants to comment on; without it nothing can be. */
  readonly onLine?: (line: PatchLine) => void;
  /** What stands below a line, such as its comments. */
  readonly below?: (line: PatchLine) => ReactNode;
}

const SIGNS = { added: "+", deleted: "−", same: " ", hunk: "" } as const;

/** Shows a unified diff: whoever cannot tell the colours apart has the signs. */
export function Patch({ text, onLine, below }: PatchProps) {
  const lines = useMemo(() => patchLines(text), [text]);
  if (lines.length === 0) return <pre className="code">{text || "No lines."}</pre>;
  return (
    <div className="patch">
      <table>
        <tbody>
          {lines.map((line, at) => {
            const number = line.new ?? line.old;
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: a diff is shown as a whole
              <Fragment key={at}>
                <tr className={`patch-${line.kind}`}>
                  <td className="patch-number">{line.old}</td>
                  <td className="patch-number">{line.new}</td>
                  <td className="patch-sign">
                    {onLine && number !== undefined ? (
                      <button
                        type="button"
                        aria-label={`Comment on line ${number}${line.kind === "deleted" ? " before the change" : ""}`}
                        onClick={() => onLine(line)}
                      >
                        {SIGNS[line.kind] === " " ? "·" : SIGNS[line.kind]}
                      </button>
                    ) : (
                      SIGNS[line.kind]
                    )}
                  </td>
                  <td className="patch-text">{line.text}</td>
                </tr>
                {below?.(line)}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
