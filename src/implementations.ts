import { AgentWorkService as AgentWorkContract } from "#gen/runner/v1/agent_work_service_pb.js";
import { WorkService as WorkContract } from "#gen/runner/v1/work_service_pb.js";
import { AccountService as AccountContract } from "#gen/service/v1/account_service_pb.js";
import { AgentService as AgentContract } from "#gen/service/v1/agent_service_pb.js";
import { EnvironmentService as EnvironmentContract } from "#gen/service/v1/environment_service_pb.js";
import { EventService as EventContract } from "#gen/service/v1/event_service_pb.js";
import { IdentityService as IdentityContract } from "#gen/service/v1/identity_service_pb.js";
import { OrganizationService as OrganizationContract } from "#gen/service/v1/organization_service_pb.js";
import { ProjectService as ProjectContract } from "#gen/service/v1/project_service_pb.js";
import { RunnerConfigurationService as RunnerConfigurationContract } from "#gen/service/v1/runner_configuration_service_pb.js";
import { RunnerService as RunnerContract } from "#gen/service/v1/runner_service_pb.js";
import { SecurityService as SecurityContract } from "#gen/service/v1/security_service_pb.js";
import { ServiceAccountService as ServiceAccountContract } from "#gen/service/v1/service_account_service_pb.js";
import { UserService as UserContract } from "#gen/service/v1/user_service_pb.js";
import { WorkflowService as WorkflowContract } from "#gen/service/v1/workflow_service_pb.js";
import type { Implementation, Implementations } from "./rpc/routes.ts";
import { AccountService } from "./services/account-service.ts";
import { AgentService } from "./services/agent-service.ts";
import { AgentWorkService } from "./services/agent-work-service.ts";
import { EnvironmentService } from "./services/environment-service.ts";
import { EventService } from "./services/event-service.ts";
import { IdentityService } from "./services/identity-service.ts";
import { OrganizationService } from "./services/organization-service.ts";
import { ProjectService } from "./services/project-service.ts";
import { RunnerConfigurationService } from "./services/runner-configuration-service.ts";
import { RunnerService } from "./services/runner-service.ts";
import { SecurityService } from "./services/security-service.ts";
import { ServiceAccountService } from "./services/service-account-service.ts";
import { UserService } from "./services/user-service.ts";
import { WorkService, type WorkServiceDependencies } from "./services/work-service.ts";
import { WorkflowService } from "./services/workflow-service.ts";

/** The services of the contract, each with what it is built from. */
export function implementations(deps: WorkServiceDependencies): Implementations {
  return new Map(
    [
      [AccountContract, new AccountService(deps)] as const,
      [AgentContract, new AgentService(deps)] as const,
      [EnvironmentContract, new EnvironmentService(deps)] as const,
      [EventContract, new EventService(deps)] as const,
      [IdentityContract, new IdentityService()] as const,
      [OrganizationContract, new OrganizationService(deps)] as const,
      [ProjectContract, new ProjectService(deps)] as const,
      [RunnerConfigurationContract, new RunnerConfigurationService(deps)] as const,
      [RunnerContract, new RunnerService(deps)] as const,
      [ServiceAccountContract, new ServiceAccountService(deps)] as const,
      [SecurityContract, new SecurityService(deps)] as const,
      [UserContract, new UserService(deps)] as const,
      [WorkflowContract, new WorkflowService(deps)] as const,
      [WorkContract, new WorkService(deps)] as const,
      [AgentWorkContract, new AgentWorkService(deps)] as const,
    ].map(([contract, service]) => [contract.typeName, service as unknown as Implementation]),
  );
}
