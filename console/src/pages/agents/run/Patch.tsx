import { Fragment, type ReactNode, useMemo } from "react";
import { linePairs, type PatchLine, patchLines } from "./patch-lines.ts";
import "../../../parts/work.css";

interface PatchProps {
  readonly text: string;
  /** Called with the line that somebody wants to comment on; without it nothing can be. */
  readonly onLine?: (line: PatchLine) => void;
  /** What is shown below a line, such as its comments, as wide as so many columns. */
  readonly below?: (line: PatchLine, columns: number) => ReactNode;
  /** Shows the lines as they were next to those that they became. */
  readonly isSplit?: boolean;
}

const SIGNS = { added: "+", deleted: "−", same: " ", hunk: "" } as const;

/** Shows a unified diff: readers who cannot tell the colours apart have the signs. */
export function Patch({ text, onLine, below, isSplit = false }: PatchProps) {
  const lines = useMemo(() => patchLines(text), [text]);
  if (isSplit && lines.length > 0) return <SplitPatch lines={lines} onLine={onLine} below={below} />;
  if (lines.length === 0) return <pre className="code">{text || "No lines."}</pre>;
  return (
    <div className="patch">
      <table>
        <tbody>
          {lines.map((line, at) => {
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: a diff is shown as a whole
              <Fragment key={at}>
                <tr className={`patch-${line.kind}`}>
                  <td className="patch-number">{line.old}</td>
                  <td className="patch-number">{line.new}</td>
                  <Sign line={line} onLine={onLine} />
                  <td className="patch-text">{line.text}</td>
                </tr>
                {below?.(line, 4)}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** The sign of a line, by which it is commented where that can be done. */
function Sign({ line, onLine }: { readonly line: PatchLine; readonly onLine: PatchProps["onLine"] }) {
  const number = line.new ?? line.old;
  const sign = SIGNS[line.kind];
  const place = `patch-sign patch-${line.kind}`;
  if (!onLine || number === undefined) return <td className={place}>{sign}</td>;
  return (
    <td className={place}>
      <button
        type="button"
        title="Comment on this line"
        aria-label={`Comment on line ${number}${line.kind === "deleted" ? " before the change" : ""}`}
        onClick={() => onLine(line)}
      >
        {sign === " " ? "·" : sign}
      </button>
    </td>
  );
}

/** The lines as they were at the left, and as they are at the right. */
function SplitPatch({
  lines,
  onLine,
  below,
}: {
  readonly lines: readonly PatchLine[];
  readonly onLine: PatchProps["onLine"];
  readonly below: PatchProps["below"];
}) {
  const pairs = useMemo(() => linePairs(lines), [lines]);
  return (
    <div className="patch patch-split">
      <table>
        <colgroup>
          <col className="patch-number" />
          <col className="patch-sign" />
          <col />
          <col className="patch-number" />
          <col className="patch-sign" />
          <col />
        </colgroup>
        <tbody>
          {pairs.map(({ left, right }, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a diff is shown as a whole
            <Fragment key={at}>
              {left?.kind === "hunk" ? (
                <tr className="patch-hunk">
                  <td colSpan={6} className="patch-text">
                    {left.text}
                  </td>
                </tr>
              ) : (
                <tr>
                  <Side
                    line={left}
                    number={left?.old}
                    onLine={left?.kind === "deleted" ? onLine : undefined}
                  />
                  <Side line={right} number={right?.new} onLine={onLine} />
                </tr>
              )}
              {left?.kind === "deleted" && below?.(left, 6)}
              {right && right.kind !== "hunk" && below?.(right, 6)}
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Side({
  line,
  number,
  onLine,
}: {
  readonly line: PatchLine | undefined;
  readonly number: number | undefined;
  readonly onLine: PatchProps["onLine"];
}) {
  if (!line) return <td colSpan={3} className="patch-none" />;
  const kind = `patch-${line.kind}`;
  return (
    <>
      <td className={`patch-number ${kind}`}>{number}</td>
      <Sign line={line} onLine={onLine} />
      <td className={`patch-text ${kind}`}>{line.text}</td>
    </>
  );
}
