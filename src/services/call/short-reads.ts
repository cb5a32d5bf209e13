import type { DescMethod, Message } from "@bufbuild/protobuf";
import { type ContextKey, createContextKey } from "@connectrpc/connect";
import { type ListProjectsRequest, ProjectService } from "#gen/service/v1/project_service_pb.js";
import { pageSize } from "../../domain/page.ts";
import { SHORT_BYTES } from "../../store/listed-row.ts";

/**
 * The context key of the function that a read of short texts calls before it reads longer ones. It returns a promise
 * when the call must wait until its caller has fewer calls in flight.
 */
export const longTextsKey: ContextKey<() => Promise<void> | undefined> = createContextKey<
  () => Promise<void> | undefined
>(() => undefined, { description: "long texts" });

/**
 * The reads that ask before they read long texts, with their number of rows; undefined for a request that does more.
 * Many of them may run concurrently, because their memory is bounded.
 */
const SHORT_READS: ReadonlyMap<DescMethod, (request: Message) => number | undefined> = new Map<
  DescMethod,
  (request: Message) => number | undefined
>([
  [ProjectService.method.getProject, () => 1],
  [
    ProjectService.method.listProjects,
    (request) => {
      const { filter, count, pagination } = request as ListProjectsRequest;
      return filter || count ? undefined : pageSize(pagination) + 1;
    },
  ],
]);

/**
 * Returns the maximum bytes that a read holds before it asks via {@link longTextsKey}; undefined for a read that does
 * not ask.
 */
export function shortBytesOf(method: DescMethod, request: Message): number | undefined {
  const rows = SHORT_READS.get(method)?.(request);
  return rows && rows * SHORT_BYTES;
}
