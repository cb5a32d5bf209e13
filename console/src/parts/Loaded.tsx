import { Skeleton } from "@mantine/core";
import type { ReactNode } from "react";
import { Problem } from "./Problem.tsx";

/** The part of a cached query that a page shows. */
interface Reading<D> {
  readonly data: D | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
}

/** Shows the content of a query, placeholder lines while it is loading, or the error. */
export function Loaded<D>({
  reading: { data, error, refetch },
  lines = 3,
  children,
}: {
  readonly reading: Reading<D>;
  readonly lines?: number;
  readonly children: (data: D) => ReactNode;
}) {
  if (data !== undefined) {
    return (
      <>
        {error ? <Problem error={error} onRetry={() => void refetch()} /> : null}
        {children(data)}
      </>
    );
  }
  if (error) return <Problem error={error} onRetry={() => void refetch()} />;
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all alike
        <Skeleton key={at} height={14} />
      ))}
    </div>
  );
}
