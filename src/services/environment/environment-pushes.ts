import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type {
  OpenPullRequestRequest,
  OpenPullRequestResponseSchema,
  PushEnvironmentBranchRequest,
  PushEnvironmentBranchResponseSchema,
} from "#gen/service/v1/environment_service_pb.js";

/** Pushes from environments. A later area implements them, since they need approvals and agent executions. */
export interface EnvironmentPushes {
  pushEnvironmentBranch(
    req: PushEnvironmentBranchRequest,
    ctx: HandlerContext,
  ): Promise<MessageInitShape<typeof PushEnvironmentBranchResponseSchema>>;
  openPullRequest(
    req: OpenPullRequestRequest,
    ctx: HandlerContext,
  ): Promise<MessageInitShape<typeof OpenPullRequestResponseSchema>>;
}
