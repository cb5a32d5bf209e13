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
 * Reads the diff of an environment, and holds the shown one: lines that somebody reads and comments on do not change
 * when a newer diff arrives, until the person asks for it. The digest of the shown diff is in the address.
 * @param streamed the digest that the run's stream reported last; a new one makes the diff be read again
 */
export function useShownDiff(environmentId: string, base: DiffBase, streamed: string) {
  const { digest: linked } = useSearch({ from: "/agents/$runId" });
  const navigate = useNavigate({ from: "/agents/$runId" });
  const [held, setHeld] = useState<Pages>();
  /** False while the address keeps the digest of the link that opened the page. */
  const [isFollowed, setFollowed] = useState(linked === undefined);
  const reading = useInfiniteQuery(
    EnvironmentService.method.getEnvironmentDiff,
    { environmentId, base, pagination: { pageSize: PAGE } },
    {
      pageParamKey: "pagination",
      // Changes were not noticed while another diff or page was shown.
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
  // The diff may have changed between two pages.
  const isWhole = newest?.every(({ digest }) => digest === digestOf(newest)) ?? false;
  const isNewer = held !== undefined && newest !== undefined && digestOf(held) !== digestOf(newest);
  const show = () => {
    setHeld(newest);
    setFollowed(true);
  };
  if (newest && isWhole && held !== newest) {
    if (held === undefined || !isNewer) setHeld(newest);
    // An empty diff can be replaced immediately.
    else if (isEmpty(held)) show();
  }
  const digest = digestOf(held);
  // Navigating here would abort a navigation to another page.
  const isUnderWay = useRouterState({ select: ({ isLoading }) => isLoading });
  useEffect(() => {
    if (isFollowed && !isUnderWay && digest !== "" && digest !== linked)
      void navigate({ search: (before) => ({ ...before, digest }), replace: true, resetScroll: false });
  }, [isFollowed, isUnderWay, digest, linked, navigate]);
  return {
    reading,
    pages: held,
    digest,
    /** True while a newer diff exists, which `show` shows. */
    isBehind: isNewer || (newest !== undefined && !isWhole),
    show: isWhole ? show : () => void refetch(),
    /** True when the address names a diff that no longer exists; `show` replaces it. */
    isOfAnother: digest !== "" && linked !== undefined && linked !== digest && !isFollowed,
  };
}
