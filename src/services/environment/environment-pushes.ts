import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type {
  OpenPullRequestRequest,
  OpenPullRequestResponseSchema,
  PushEnvironmentBranchRequest,
  PushEnvironmentBranchResponseSchema,
} from "#gen/service/v1/environment_service_pb.js";

/** The pushes of what is in environments, which take approvals and agent executions, of later areas. */
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
