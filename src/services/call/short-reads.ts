import type { DescMethod, Message } from "@bufbuild/protobuf";
import { type ContextKey, createContextKey } from "@connectrpc/connect";
import { type ListProjectsRequest, ProjectService } from "#gen/service/v1/project_service_pb.js";
import { pageSize } from "../../domain/page.ts";
import { SHORT_BYTES } from "../../store/listed-row.ts";

/**
 * The context key of the function that a read of short texts calls before it reads longer ones. It returns a promise
 * where the call has to wait until those of its caller are fewer.
 */
export const longTextsKey: ContextKey<() => Promise<void> | undefined> = createContextKey<
  () => Promise<void> | undefined
>(() => undefined, { description: "long texts" });

/**
 * The reads that ask before they read long texts, with the number of their rows; undefined for a request that does more
 * than that. Many of them may run at once, since it is known how much they hold.
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

/** Returns what a read holds at most before it asks by {@link longTextsKey}; undefined for one that does not ask. */
export function shortBytesOf(method: DescMethod, request: Message): number | undefined {
  const rows = SHORT_READS.get(method)?.(request);
  return rows && rows * SHORT_BYTES;
}
