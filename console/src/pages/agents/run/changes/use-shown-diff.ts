import { useInfiniteQuery } from "@connectrpc/connect-query";
import { useNavigate, useRouterState, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import type { DiffBase } from "#gen/service/v1/environment_changes_pb.js";
import type { GetEnvironmentDiffResponse } from "#gen/service/v1/environment_service_pb.js";
import { EnvironmentService } from "#gen/service/v1/environment_service_pb.js";

const PAGE = 100;

/** The pages of one diff. */
type Pages = readonly GetEnvironmentDiffResponse[];

const digestOf = (pages: Pages | undefined): string => pages?.[0]?.digest ?? "";
const isEmpty = (pages: Pages): boolean => pages.every(({ files }) => files.length === 0);

/**
 * Reads the diff of an environment, and holds what is shown: lines that somebody reads and comments on stay as they are
 * when a newer diff comes, until they ask for it. The digest of what is shown is in the address.
 * @param streamed the digest that the run's stream reported last: when it changes, the diff is read again
 */
export function useShownDiff(environmentId: string, base: DiffBase, streamed: string) {
  const { digest: linked } = useSearch({ from: "/agents/$runId" });
  const navigate = useNavigate({ from: "/agents/$runId" });
  const [held, setHeld] = useState<Pages>();
  /** False while the address names a diff that was not found, as its sender has sent it. */
  const [isFollowed, setFollowed] = useState(linked === undefined);
  const reading = useInfiniteQuery(
    EnvironmentService.method.getEnvironmentDiff,
    { environmentId, base, pagination: { pageSize: PAGE } },
    {
      pageParamKey: "pagination",
      // Nothing here noticed what changed while another diff or page was shown.
      staleTime: 0,
      getNextPageParam: ({ pagination }) =>
        pagination?.nextToken ? { pageSize: PAGE, token: pagination.nextToken } : undefined,
    },
  );
  const { refetch } = reading;
  const lastStreamed = useRef(streamed);
  useEffect(() => {
    if (lastStreamed.current !== streamed) void refetch();
    lastStreamed.current = streamed;
  }, [streamed, refetch]);
  const newest = reading.data?.pages;
  // Between two pages the diff may have become another.
  const isWhole = newest?.every(({ digest }) => digest === digestOf(newest)) ?? false;
  const isNewer = held !== undefined && newest !== undefined && digestOf(held) !== digestOf(newest);
  const show = () => {
    setHeld(newest);
    setFollowed(true);
  };
  if (newest && isWhole && held !== newest) {
    if (held === undefined || !isNewer) setHeld(newest);
    // Nobody reads what is not there.
    else if (isEmpty(held)) show();
  }
  const digest = digestOf(held);
  // A person on the way to another page is not called back.
  const isUnderWay = useRouterState({ select: ({ isLoading }) => isLoading });
  useEffect(() => {
    if (isFollowed && !isUnderWay && digest !== "" && digest !== linked)
      void navigate({ search: (before) => ({ ...before, digest }), replace: true, resetScroll: false });
  }, [isFollowed, isUnderWay, digest, linked, navigate]);
  return {
    reading,
    pages: held,
    digest,
    /** True while what is shown is not the newest, which `show` takes. */
    isBehind: isNewer || (newest !== undefined && !isWhole),
    show: isWhole ? show : () => void refetch(),
    /** True where the address is of a diff that nobody has any more; `show` lets go of it. */
    isOfAnother: digest !== "" && linked !== undefined && linked !== digest && !isFollowed,
  };
}
