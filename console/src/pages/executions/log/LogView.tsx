import { Button, Checkbox, TextInput } from "@mantine/core";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { download } from "../../../parts/download.ts";
import { Icon } from "../../../parts/Icon.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { useDrawnRange } from "../../../parts/use-drawn-range.ts";
import type { LogLine } from "./log-text.ts";
import { useLog } from "./use-log.ts";

/** Height of a line in pixels (executions.css). */
const LINE_HEIGHT = 18;

interface LogViewProps {
  readonly actionId: string;
  readonly stepIndex: number;
  readonly attempt: number;
  /** The name of the file to download. */
  readonly fileName: string;
  /** True when the action prints no more. */
  readonly isOver: boolean;
}

/** Shows the output of a step. It renders only the visible lines, and follows the end until somebody scrolls up. */
export function LogView({ actionId, stepIndex, attempt, fileName, isOver }: LogViewProps) {
  const { log, version, state, error } = useLog({ actionId, stepIndex, attempt, isOver });
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [isFollowing, setIsFollowing] = useState(true);
  const frame = useRef<HTMLDivElement>(null);
  const lines = log.lines;
  const drawn = useDrawnRange(frame, lines.length, { rowHeight: LINE_HEIGHT, spare: 20 });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version tells that the lines have changed
  const found = useMemo(() => matchesOf(lines, text), [version, text]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each version may have more lines
  useLayoutEffect(() => {
    const element = frame.current;
    if (isFollowing && element) element.scrollTop = element.scrollHeight;
  }, [version, isFollowing]);
  const line = text === "" ? undefined : found[at];
  // biome-ignore lint/correctness/useExhaustiveDependencies: another text may be on the same line
  useEffect(() => {
    if (line === undefined) return;
    setIsFollowing(false);
    frame.current?.scrollTo({ top: Math.max(0, line * LINE_HEIGHT - 120) });
  }, [line, text]);
  const last = useRef({ scrollTop: 0, scrollHeight: 0, clientHeight: 0 });
  /**
   * Stops following the end once somebody scrolls up in whatever way; removed lines and a taller frame do not count.
   */
  const onScroll = (element: HTMLDivElement) => {
    const { scrollTop, scrollHeight, clientHeight } = element;
    const before = last.current;
    last.current = { scrollTop, scrollHeight, clientHeight };
    if (
      scrollTop < before.scrollTop &&
      scrollHeight >= before.scrollHeight &&
      clientHeight === before.clientHeight
    )
      setIsFollowing(false);
  };
  const go = (step: number) =>
    setAt((before) => (found.length === 0 ? 0 : (before + step + found.length) % found.length));
  return (
    <div className="log">
      <div className="row log-head">
        <TextInput
          type="search"
          size="xs"
          aria-label="Search the log"
          placeholder="Search the log"
          leftSection={<Icon name="search" size={14} />}
          value={text}
          onChange={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
          }}
        />
        {text !== "" && (
          <span className="dim small figures" role="status">
            {found.length === 0 ? "Nothing found" : `${at + 1} of ${found.length.toLocaleString()} lines`}
          </span>
        )}
        <span className="log-deeds">
          {state === "behind" && <span className="dim small late">Waiting for the server …</span>}
          {!isOver && (
            <Checkbox
              size="xs"
              label="Follow"
              checked={isFollowing}
              onChange={(event) => setIsFollowing(event.currentTarget.checked)}
            />
          )}
          <Button
            variant="default"
            size="compact-xs"
            disabled={lines.length === 0}
            onClick={() => download(log.bytes(), fileName)}
          >
            Download
          </Button>
        </span>
      </div>
      <Problem error={error} />
      <div
        ref={frame}
        className="log-lines"
        role="log"
        aria-label={`Log of step ${stepIndex + 1}`}
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
        tabIndex={0}
        onScroll={(event) => onScroll(event.currentTarget)}
      >
        {lines.length === 0 ? (
          <p className="dim log-none">
            {isOver ? "The step printed nothing." : "Nothing has been printed yet."}
          </p>
        ) : (
          <div className="log-all" style={{ height: drawn.height }}>
            <div className="log-drawn" style={{ transform: `translateY(${drawn.offset}px)` }}>
              {lines.slice(drawn.from, drawn.to).map((line, index) => {
                const number = drawn.from + index;
                return (
                  <div
                    key={number}
                    className={line.isNote ? "log-line log-note" : "log-line"}
                    data-found={(text !== "" && found[at] === number) || undefined}
                  >
                    <span className="log-number">{number + 1}</span>
                    <Marked text={line.text} wanted={text} />
                  </div>
                );
              })}
            </div>
          </div>
        )}
      </div>
    </div>
  );
}

/** Returns the indexes of the lines that contain a text, ignoring case. */
function matchesOf(lines: readonly LogLine[], text: string): number[] {
  if (text === "") return [];
  const wanted = text.toLowerCase();
  return lines.flatMap((line, at) => (line.text.toLowerCase().includes(wanted) ? [at] : []));
}

/** A line with the matches of the search highlighted. */
function Marked({ text, wanted }: { readonly text: string; readonly wanted: string }) {
  const at = wanted === "" ? -1 : text.toLowerCase().indexOf(wanted.toLowerCase());
  if (at === -1) return <span>{text}</span>;
  return (
    <span>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + wanted.length)}</mark>
      {text.slice(at + wanted.length)}
    </span>
  );
}
