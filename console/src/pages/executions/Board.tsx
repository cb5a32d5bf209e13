import { Link } from "@tanstack/react-router";
import { type KeyboardEvent, type RefObject, useLayoutEffect, useMemo, useRef, useState } from "react";
import {
  WorkflowExecutionAction_Status_StepStatus_StepPhase as StepPhase,
  type WorkflowExecutionAction,
} from "#gen/service/v1/workflow_pb.js";
import { Icon } from "../../parts/Icon.tsx";
import { State, type Tone } from "../../parts/State.tsx";
import { useDrawnRange } from "../../parts/use-drawn-range.ts";
import { actionState, GROUPS, stepText } from "./action-state.ts";

/** Height of a row of cells in pixels, and the minimum width of a cell. */
const ROW_HEIGHT = 34;
const CELL_WIDTH = 168;

/** Maximum cells of a row, which bounds the rendered cells in a wide window. */
const MAX_COLUMNS = 10;

/** One row of the board: a group heading, or actions of the group. */
type Row =
  | { readonly kind: "head"; readonly tone: Tone; readonly word: string; readonly count: number }
  | { readonly kind: "cells"; readonly tone: Tone; readonly actions: readonly WorkflowExecutionAction[] };

/** Shows all actions as cells, failures first; of up to 1,000, only the visible ones are rendered. */
export function Board({
  actions,
  selectedId,
}: {
  readonly actions: readonly WorkflowExecutionAction[];
  readonly selectedId: string | undefined;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const columns = useColumns(frame);
  const rows = useMemo(() => rowsOf(actions, columns), [actions, columns]);
  const drawn = useDrawnRange(frame, rows.length, { rowHeight: ROW_HEIGHT, spare: 2 });
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the arrows go from one link to the next, which take the focus
    <div ref={frame} className="board" onKeyDown={(event) => moveBetweenCells(event, columns)}>
      <div className="board-all" style={{ height: drawn.height }}>
        <div className="board-drawn" style={{ transform: `translateY(${drawn.offset}px)` }}>
          {rows.slice(drawn.from, drawn.to).map((row) =>
            row.kind === "head" ? (
              <h2 key={row.tone} className="board-head" style={{ height: ROW_HEIGHT }}>
                <State tone={row.tone} word={row.word} />{" "}
                <span className="dim figures">{row.count.toLocaleString()}</span>
              </h2>
            ) : (
              <div
                key={row.actions[0]?.id}
                className="board-row"
                style={{ height: ROW_HEIGHT, gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` }}
              >
                {row.actions.map((action) => (
                  <Cell
                    key={action.id}
                    action={action}
                    tone={row.tone}
                    isSelected={action.id === selectedId}
                  />
                ))}
              </div>
            ),
          )}
        </div>
      </div>
    </div>
  );
}

function Cell({
  action,
  tone,
  isSelected,
}: {
  readonly action: WorkflowExecutionAction;
  readonly tone: Tone;
  readonly isSelected: boolean;
}) {
  const name = action.metadata?.actionName ?? "";
  const [, word] = actionState(action);
  return (
    <Link
      to="."
      search={(before: Record<string, unknown>) => ({ ...before, action: action.id, step: undefined })}
      replace
      resetScroll={false}
      preload={false}
      className={`cell cell-${tone}`}
      aria-current={isSelected || undefined}
      title={`${name}: ${word}${atStep(action)}`}
    >
      <span className={`tone-${tone}`}>
        <Icon name={tone} size={14} />
      </span>
      <span className="cut">{name}</span>
    </Link>
  );
}

/** Returns the step that an action is running or failed at, for the title of its cell. */
function atStep({ status }: WorkflowExecutionAction): string {
  const at = status?.stepStatuses.find(
    ({ phase }) => phase === StepPhase.RUNNING || phase === StepPhase.FAILED,
  );
  return at ? `, step ${at.stepIndex + 1}: ${stepText(at.step)}` : "";
}

function rowsOf(actions: readonly WorkflowExecutionAction[], columns: number): Row[] {
  const groups = Map.groupBy(actions, (action) => actionState(action)[0]);
  return GROUPS.flatMap(([tone, word]): Row[] => {
    const group = groups.get(tone);
    if (!group) return [];
    const lines = Array.from({ length: Math.ceil(group.length / columns) }, (_, at): Row => {
      return { kind: "cells", tone, actions: group.slice(at * columns, (at + 1) * columns) };
    });
    return [{ kind: "head", tone, word, count: group.length }, ...lines];
  });
}

/** Returns how many cells fit into the width of an element. */
function useColumns(frame: RefObject<HTMLElement | null>): number {
  const [columns, setColumns] = useState(6);
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return;
    const look = () =>
      setColumns(Math.max(1, Math.min(MAX_COLUMNS, Math.floor(element.clientWidth / CELL_WIDTH))));
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, [frame]);
  return columns;
}

function moveBetweenCells(event: KeyboardEvent<HTMLElement>, columns: number): void {
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
  if (step === undefined) return;
  const cells = [...event.currentTarget.querySelectorAll<HTMLElement>(".cell")];
  const at = cells.indexOf(document.activeElement as HTMLElement);
  const next = cells[at + step];
  if (at === -1 || !next) return;
  event.preventDefault();
  next.focus();
}
