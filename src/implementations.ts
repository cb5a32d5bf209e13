import type { DescMethodUnary } from "@bufbuild/protobuf";
import type { ServiceImplSpec } from "@connectrpc/connect";
import { AgentWorkService as AgentWorkContract } from "#gen/runner/v1/agent_work_service_pb.js";
import { EnvironmentWorkService as EnvironmentWorkContract } from "#gen/runner/v1/environment_work_service_pb.js";
import { WorkService as WorkContract } from "#gen/runner/v1/work_service_pb.js";
import { AccountService as AccountContract } from "#gen/service/v1/account_service_pb.js";
import { AgentReviewService as AgentReviewContract } from "#gen/service/v1/agent_review_service_pb.js";
import { AgentService as AgentContract } from "#gen/service/v1/agent_service_pb.js";
import { ApprovalService as ApprovalContract } from "#gen/service/v1/approval_service_pb.js";
import { EnvironmentService as EnvironmentContract } from "#gen/service/v1/environment_service_pb.js";
import { EventService as EventContract } from "#gen/service/v1/event_service_pb.js";
import { EventSubscriptionService as EventSubscriptionContract } from "#gen/service/v1/event_subscription_service_pb.js";
import { GroupService as GroupContract } from "#gen/service/v1/group_service_pb.js";
import { IdentityService as IdentityContract } from "#gen/service/v1/identity_service_pb.js";
import { OrganizationService as OrganizationContract } from "#gen/service/v1/organization_service_pb.js";
import { PrebuildService as PrebuildContract } from "#gen/service/v1/prebuild_service_pb.js";
import { ProjectService as ProjectContract } from "#gen/service/v1/project_service_pb.js";
import { ResourceService as ResourceContract } from "#gen/service/v1/resource_service_pb.js";
import { RunnerConfigurationService as RunnerConfigurationContract } from "#gen/service/v1/runner_configuration_service_pb.js";
import { RunnerService as RunnerContract } from "#gen/service/v1/runner_service_pb.js";
import { SecretService as SecretContract } from "#gen/service/v1/secret_service_pb.js";
import { SecurityService as SecurityContract } from "#gen/service/v1/security_service_pb.js";
import { ServiceAccountService as ServiceAccountContract } from "#gen/service/v1/service_account_service_pb.js";
import { UserService as UserContract } from "#gen/service/v1/user_service_pb.js";
import { WorkflowService as WorkflowContract } from "#gen/service/v1/workflow_service_pb.js";
import { implement } from "./rpc/routes.ts";
import { AccountService } from "./services/access/account-service.ts";
import { EventService } from "./services/access/event-service.ts";
import {
  type EventSubscriptionDependencies,
  EventSubscriptionService,
} from "./services/access/event-subscription/event-subscription-service.ts";
import { GroupService } from "./services/access/group/group-service.ts";
import { OrganizationService } from "./services/access/organization-service.ts";
import {
  openPullRequest,
  type PushDependencies,
  pushEnvironmentBranch,
} from "./services/access/push/push-operations.ts";
import type { FindOperation } from "./services/access/resource/make-changes.ts";
import { ResourceService } from "./services/access/resource/resource-service.ts";
import { RunnerService } from "./services/access/runner-service.ts";
import { SecretService } from "./services/access/secret-service.ts";
import { ServiceAccountService } from "./services/access/service-account-service.ts";
import "./services/access/hooks.ts";
import { UserService } from "./services/access/user-service.ts";
import { handlerOf } from "./services/access/work-handlers.ts";
import { AgentService } from "./services/agent/agent-service.ts";
import { runsInEnvironment as runs } from "./services/agent/reading/runs-in-environment.ts";
import { AgentReviewService } from "./services/agent/review/agent-review-service.ts";
import { AgentWorkService } from "./services/agent/work/agent-work-service.ts";
import { ApprovalService } from "./services/approval/approval-service.ts";
import type { EnvironmentPushes } from "./services/environment/environment-pushes.ts";
import { EnvironmentService } from "./services/environment/environment-service.ts";
import { EnvironmentWorkService } from "./services/environment/environment-work-service.ts";
import { IdentityService } from "./services/identity/identity-service.ts";
import { SecurityService } from "./services/policy/security-service.ts";
import { PrebuildService } from "./services/project/prebuild-service.ts";
import { ProjectService } from "./services/project/project-service.ts";
import { RunnerConfigurationService } from "./services/runner/runner-configuration-service.ts";
import { WorkService, type WorkServiceDependencies } from "./services/runner/work-service.ts";
import { WorkflowService } from "./services/workflow/workflow-service.ts";
import { findEnvironment } from "./store/environment/environment.ts";

/** Returns the services of the contract, each built from its dependencies. */
export function implementations(
  deps: Omit<WorkServiceDependencies, "handlerOf"> & PushDependencies & EventSubscriptionDependencies,
): readonly ServiceImplSpec[] {
  const pushes: EnvironmentPushes = {
    pushEnvironmentBranch: (req, ctx) => pushEnvironmentBranch(deps, req, ctx),
    openPullRequest: (req, ctx) => openPullRequest(deps, req, ctx),
  };
  const services = [
    implement(AccountContract, new AccountService(deps)),
    implement(AgentReviewContract, new AgentReviewService(deps)),
    implement(AgentContract, new AgentService(deps)),
    implement(ApprovalContract, new ApprovalService(deps)),
    implement(EnvironmentContract, new EnvironmentService({ ...deps, runs, pushes })),
    implement(EventContract, new EventService(deps)),
    implement(EventSubscriptionContract, new EventSubscriptionService(deps)),
    implement(GroupContract, new GroupService(deps)),
    implement(IdentityContract, new IdentityService()),
    implement(OrganizationContract, new OrganizationService(deps)),
    implement(PrebuildContract, new PrebuildService(deps)),
    implement(ProjectContract, new ProjectService({ ...deps, findEnvironment })),
    implement(RunnerConfigurationContract, new RunnerConfigurationService(deps)),
    implement(RunnerContract, new RunnerService(deps)),
    implement(ServiceAccountContract, new ServiceAccountService(deps)),
    implement(SecretContract, new SecretService(deps)),
    implement(SecurityContract, new SecurityService(deps)),
    implement(UserContract, new UserService(deps)),
    implement(WorkflowContract, new WorkflowService(deps)),
    implement(WorkContract, new WorkService({ ...deps, handlerOf })),
    implement(AgentWorkContract, new AgentWorkService(deps)),
    implement(EnvironmentWorkContract, new EnvironmentWorkService({ ...deps, runs })),
  ];
  return [...services, implement(ResourceContract, new ResourceService(deps, operationsOf(services)))];
}

/** Returns a function that finds the implementation of an operation. */
function operationsOf(services: readonly ServiceImplSpec[]): FindOperation {
  return (method: DescMethodUnary) => {
    const service = services.find(({ service }) => service.typeName === method.parent.typeName);
    const operation = service?.methods[method.localName];
    if (operation?.kind !== "unary") throw new Error(`${method.name} is no unary operation of the services`);
    return (request, ctx) => operation.impl(request, ctx);
  };
}
