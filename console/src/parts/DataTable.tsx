import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { useHeldRows } from "./use-held-rows.ts";

/** A column of a table. */
export interface Column<R> {
  readonly head: string;
  readonly cell: (row: R) => ReactNode;
  /** Numbers are aligned to the right. */
  readonly isNumeric?: boolean;
  /** Hidden in a narrow window. */
  readonly isExtra?: boolean;
}

/** Lets a person select rows, to act on all of them at once. */
export interface Selection<R> {
  /** Keys of the selected rows. */
  readonly chosen: ReadonlySet<string>;
  readonly nameOf: (row: R) => string;
  /** Returns why a row cannot be selected; undefined when it can. */
  readonly whyNot: (row: R) => string | undefined;
  readonly onChange: (chosen: ReadonlySet<string>) => void;
}

interface DataTableProps<R> {
  readonly label: string;
  readonly rows: readonly R[];
  readonly columns: readonly Column<R>[];
  readonly keyOf: (row: R) => string;
  /** Loads the next page; undefined when there is none. */
  readonly onMore?: (() => void) | undefined;
  readonly isLoadingMore?: boolean;
  /** Stacks a row's cells in a narrow window, for rows that do not fit in one line. */
  readonly isStacked?: boolean;
  /** Adds a first column to select rows, also with the x key (frame/rows.ts). */
  readonly selection?: Selection<R> | undefined;
}

/**
 * Shows a list as a dense table. The link in a row's first cell covers the whole row and takes its clicks; j and k
 * move between rows (frame/rows.ts).
 */
export function DataTable<R>({
  label,
  rows,
  columns,
  keyOf,
  onMore,
  isLoadingMore = false,
  isStacked = false,
  selection,
}: DataTableProps<R>) {
  const { shown, held, top, show } = useHeldRows(rows, keyOf);
  const choosable = selection ? rows.filter((row) => selection.whyNot(row) === undefined) : [];
  const isEachChosen =
    choosable.length > 0 && choosable.every((row) => selection?.chosen.has(keyOf(row)) === true);
  return (
    <div className="table-frame" ref={watchFit}>
      <div className="table-start" ref={top} />
      <div className="table-news" aria-live="polite">
        {held > 0 && (
          <Button size="compact-xs" onClick={show}>
            {held.toLocaleString()} new
          </Button>
        )}
      </div>
      <table className={isStacked ? "table stacked" : "table"} aria-label={label}>
        <thead>
          <tr>
            {selection && (
              <th scope="col" className="choice">
                <Choice
                  name="Select all"
                  isChosen={isEachChosen}
                  whyNot={choosable.length === 0 ? "There is none." : undefined}
                  onChange={() => selection.onChange(new Set(isEachChosen ? [] : choosable.map(keyOf)))}
                />
              </th>
            )}
            {columns.map(({ head, isNumeric, isExtra }) => (
              <th key={head} scope="col" className={classOf(isNumeric, isExtra)}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={keyOf(row)}>
              {selection && (
                <td className="choice">
                  <Choice
                    name={`Choose ${selection.nameOf(row)}`}
                    isChosen={selection.chosen.has(keyOf(row))}
                    whyNot={selection.whyNot(row)}
                    onChange={() => selection.onChange(toggled(selection.chosen, keyOf(row)))}
                  />
                </td>
              )}
              {columns.map(({ head, cell, isNumeric, isExtra }) => (
                <td
                  key={head}
                  className={classOf(isNumeric, isExtra)}
                  data-head={isStacked ? head : undefined}
                >
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {onMore && (
        <div className="table-more">
          <Button variant="default" size="xs" onClick={onMore} loading={isLoadingMore}>
            Show more
          </Button>
        </div>
      )}
    </div>
  );
}

/**
 * Marks a frame while its table fits. The table's head is then sticky while the page scrolls, which is impossible in
 * a frame that scrolls sideways.
 */
function watchFit(frame: HTMLDivElement) {
  const table = frame.querySelector("table") as HTMLElement;
  const mark = () => frame.toggleAttribute("data-fits", table.offsetWidth <= frame.clientWidth);
  const observer = new ResizeObserver(mark);
  observer.observe(frame);
  observer.observe(table);
  mark();
  return () => observer.disconnect();
}

/** Returns a set with the key added, or removed if it was there. */
const toggled = (keys: ReadonlySet<string>, key: string): ReadonlySet<string> =>
  new Set(keys.has(key) ? [...keys].filter((each) => each !== key) : [...keys, key]);

function Choice({
  name,
  isChosen,
  whyNot,
  onChange,
}: {
  readonly name: string;
  readonly isChosen: boolean;
  readonly whyNot: string | undefined;
  readonly onChange: () => void;
}) {
  return (
    <label title={whyNot}>
      <input
        type="checkbox"
        aria-label={whyNot === undefined ? name : `${name}: ${whyNot}`}
        checked={isChosen}
        disabled={whyNot !== undefined}
        onChange={onChange}
      />
    </label>
  );
}

const classOf = (isNumeric = false, isExtra = false): string | undefined =>
  [isNumeric && "numeric", isExtra && "extra"].filter(Boolean).join(" ") || undefined;
