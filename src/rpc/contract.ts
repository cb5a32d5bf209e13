import type { DescService } from "@bufbuild/protobuf";
import { AgentWorkService } from "#gen/runner/v1/agent_work_service_pb.js";
import { EnvironmentWorkService } from "#gen/runner/v1/environment_work_service_pb.js";
import { WorkService } from "#gen/runner/v1/work_service_pb.js";
import { AccountService } from "#gen/service/v1/account_service_pb.js";
import { AgentReviewService } from "#gen/service/v1/agent_review_service_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { ApprovalService } from "#gen/service/v1/approval_service_pb.js";
import { EnvironmentService } from "#gen/service/v1/environment_service_pb.js";
import { EventService } from "#gen/service/v1/event_service_pb.js";
import { EventSubscriptionService } from "#gen/service/v1/event_subscription_service_pb.js";
import { GroupService } from "#gen/service/v1/group_service_pb.js";
import { IdentityService } from "#gen/service/v1/identity_service_pb.js";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { PrebuildService } from "#gen/service/v1/prebuild_service_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { ResourceService } from "#gen/service/v1/resource_service_pb.js";
import { RunnerConfigurationService } from "#gen/service/v1/runner_configuration_service_pb.js";
import { RunnerService } from "#gen/service/v1/runner_service_pb.js";
import { SecretService } from "#gen/service/v1/secret_service_pb.js";
import { SecurityService } from "#gen/service/v1/security_service_pb.js";
import { ServiceAccountService } from "#gen/service/v1/service_account_service_pb.js";
import { UserService } from "#gen/service/v1/user_service_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";

/** The contract: every service that the server offers to clients. */
export const CONTRACT: readonly DescService[] = [
  AccountService,
  AgentReviewService,
  AgentService,
  ApprovalService,
  EnvironmentService,
  EventService,
  EventSubscriptionService,
  GroupService,
  IdentityService,
  OrganizationService,
  PrebuildService,
  ProjectService,
  ResourceService,
  RunnerConfigurationService,
  RunnerService,
  SecretService,
  SecurityService,
  ServiceAccountService,
  UserService,
  WorkflowService,
  WorkService,
  AgentWorkService,
  EnvironmentWorkService,
];
