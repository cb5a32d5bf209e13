import { Button } from "@mantine/core";
import type { ReactNode } from "react";

/** A column of a table. */
export interface Column<R> {
  readonly head: string;
  readonly cell: (row: R) => ReactNode;
  /** Figures stand at the right. */
  readonly isNumeric?: boolean;
  /** Left out where the window is narrow. */
  readonly isExtra?: boolean;
}

interface DataTableProps<R> {
  readonly label: string;
  readonly rows: readonly R[];
  readonly columns: readonly Column<R>[];
  readonly keyOf: (row: R) => string;
  /** Loads the next page; undefined where there is none. */
  readonly onMore?: (() => void) | undefined;
  readonly isLoadingMore?: boolean;
}

/**
 * Shows a list as a dense table. The link in a row's first cell is the row: it takes the clicks of the whole row, and j
 * and k go from one to the next (frame/rows.ts).
 */
export function DataTable<R>({
  label,
  rows,
  columns,
  keyOf,
  onMore,
  isLoadingMore = false,
}: DataTableProps<R>) {
  return (
    <div className="table-frame">
      <table className="table" aria-label={label}>
        <thead>
          <tr>
            {columns.map(({ head, isNumeric, isExtra }) => (
              <th key={head} scope="col" className={classOf(isNumeric, isExtra)}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ head, cell, isNumeric, isExtra }) => (
                <td key={head} className={classOf(isNumeric, isExtra)}>
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

const classOf = (isNumeric = false, isExtra = false): string | undefined =>
  [isNumeric && "numeric", isExtra && "extra"].filter(Boolean).join(" ") || undefined;
