import { VisuallyHidden } from "@mantine/core";
import {
  createElement,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from "react";
import type { DrawnDiff } from "./engine.ts";
import { focusLine, labelRows } from "./label-rows.ts";
import { focusedLine, focusNext, type MarkedLines, markNext, placeOf } from "./marked-lines.ts";
import {
  linesName,
  type PatchLine,
  type PatchPlace,
  patchLines,
  patchOf,
  placeIn,
  quoteOf,
  visible,
} from "./patch-lines.ts";
import { type Engine, useEngine } from "./use-engine.ts";
import "../work.css";

/** What is shown below a line, such as its comments. */
export interface LineNote {
  readonly isOld: boolean;
  readonly line: number;
  readonly content: ReactNode;
}

interface DiffProps {
  /** A unified diff of one file. */
  readonly text: string;
  /** The path of the file, whose extension determines the language. */
  readonly path?: string;
  /** Shows the old lines next to the new ones. */
  readonly isSplit?: boolean;
  /** Called with the lines that somebody wants to comment on, and their text; absent when comments are not possible. */
  readonly onLines?: (place: PatchPlace, quote: string) => void;
  /** The lines that are being commented on. */
  readonly chosen?: PatchPlace | undefined;
  readonly notes?: readonly LineNote[];
}

/** Height in pixels of a line that is not rendered yet. */
const LINE_HEIGHT = 20;
const NO_NOTES: readonly LineNote[] = [];

/** Shows a unified diff. Its + and - signs do not depend on seeing colours. */
export function Diff(props: DiffProps) {
  const { text } = props;
  const lines = useMemo(() => patchLines(text), [text]);
  const engine = useEngine();
  if (lines.length === 0 || engine === "failed") {
    return <pre className="code">{visible(text) || "No lines."}</pre>;
  }
  if (engine) return <Drawn {...props} engine={engine} lines={lines} />;
  return (
    <div className="diff-waits" style={{ minHeight: lines.length * LINE_HEIGHT }} role="status">
      <span className="soon dim">Loading the lines …</span>
    </div>
  );
}

interface DrawnProps extends DiffProps {
  readonly engine: Engine;
  readonly lines: readonly PatchLine[];
}

function Drawn({ engine, lines, path = "", isSplit = false, onLines, chosen, notes = NO_NOTES }: DrawnProps) {
  const { module, isColoured } = engine;
  const root = useRef<HTMLElement>(null);
  const drawn = useRef<DrawnDiff>(undefined);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const diff = useMemo(
    () => module.parse(patchOf(lines), path, isColoured),
    [module, lines, path, isColoured],
  );
  const choose = useRef<(isOld: boolean, first: number, last: number) => void>(undefined);
  choose.current = (isOld, first, last) => {
    const place = placeIn(lines, { isOld, first: Math.min(first, last), last: Math.max(first, last) });
    setMarked(undefined);
    onLines?.(place, quoteOf(lines, place));
    // The selection made while the pointer moved may contain more.
    redraw();
  };
  const canChoose = onLines !== undefined;
  const [marked, setMarked] = useState<MarkedLines>();
  const options = useMemo<Parameters<DrawnDiff["show"]>[1]>(
    () => ({
      diffStyle: isSplit ? "split" : "unified",
      onPostRender: ({ shadowRoot }) => shadowRoot && labelRows(shadowRoot, canChoose),
      ...(canChoose && {
        lineHoverHighlight: "number",
        enableLineSelection: true,
        onLineNumberClick: ({ annotationSide, lineNumber }) =>
          choose.current?.(annotationSide === "deletions", lineNumber, lineNumber),
        onLineSelectionEnd(range) {
          if (!range) return redraw();
          const { start, end, side, endSide = side } = range;
          // A selection of one line is a click.
          if (start === end && side === endSide) return;
          choose.current?.(endSide === "deletions", side === endSide ? start : end, end);
        },
      }),
    }),
    [isSplit, canChoose],
  );
  const places = notes.map(({ isOld, line }) => `${isOld ? "deletions" : "additions"} ${line}`).join();
  const annotations = useMemo(() => annotationsOf(places), [places]);
  useLayoutEffect(
    () => () => {
      drawn.current?.cleanUp();
      drawn.current = undefined;
    },
    [],
  );
  // It detects itself what has changed.
  useLayoutEffect(() => {
    if (!root.current || !diff) return;
    drawn.current ??= new module.DrawnDiff(root.current, redraw);
    drawn.current.show(diff, options, annotations);
    drawn.current.setSelectedLines(rangeOf(marked ? placeOf(marked) : chosen), { notify: false });
  });
  const left = useRef(chosen);
  // After somebody commented with the keyboard, the focus returns to the line once the field is gone.
  useEffect(() => {
    const shadow = root.current?.shadowRoot;
    if (!chosen && left.current && shadow && document.activeElement === document.body)
      focusLine(shadow, left.current.isOld, left.current.last, { preventScroll: true });
    left.current = chosen;
  }, [chosen]);
  const onKeyDown = (event: KeyboardEvent) => {
    const shadow = root.current?.shadowRoot;
    const focused = shadow && focusedLine(shadow);
    if (!(canChoose && shadow && focused) || event.key === "Shift") return;
    const begun = marked?.isOld === focused.isOld && marked.to === focused.to ? marked : undefined;
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : undefined;
    if (by && event.shiftKey) {
      event.preventDefault();
      const next = markNext(lines, begun ?? focused, by);
      if (!next) return;
      setMarked(next);
      focusLine(shadow, next.isOld, next.to);
      return;
    }
    setMarked(undefined);
    if (by) focusNext(shadow, by);
    // Enter and Space act like a click, as on other buttons.
    else if (event.key === "Enter" || event.key === " ")
      choose.current?.(focused.isOld, begun?.from ?? focused.from, focused.to);
    else return;
    event.preventDefault();
  };
  const { first, last } = marked ? placeOf(marked) : { first: 0, last: 0 };
  return (
    <>
      {createElement(
        "diffs-container",
        { ref: root, onKeyDown },
        notes.map(({ isOld, line, content }) => {
          const name = `annotation-${isOld ? "deletions" : "additions"}-${line}`;
          return (
            <div key={name} slot={name} className="diff-note">
              {content}
            </div>
          );
        }),
      )}
      {canChoose && (
        <VisuallyHidden role="status">
          {marked && `Chosen: ${linesName(first, last)}. Enter comments on that.`}
        </VisuallyHidden>
      )}
    </>
  );
}

const rangeOf = (place: PatchPlace | undefined) =>
  place ? { start: place.first, end: place.last, side: sideOf(place.isOld) } : null;

const sideOf = (isOld: boolean) => (isOld ? ("deletions" as const) : ("additions" as const));

/** Returns places in the format of @pierre/diffs; the same object as long as the text does not change. */
const annotationsOf = (places: string) =>
  places
    .split(",")
    .filter((place) => place !== "")
    .map((place) => {
      const [side, line] = place.split(" ");
      return { side: sideOf(side === "deletions"), lineNumber: Number(line) };
    });
