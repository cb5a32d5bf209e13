import { EnvironmentService as EnvironmentContract } from "#gen/service/v1/environment_service_pb.js";
import { IdentityService as IdentityContract } from "#gen/service/v1/identity_service_pb.js";
import { PrebuildService as PrebuildContract } from "#gen/service/v1/prebuild_service_pb.js";
import { ProjectService as ProjectContract } from "#gen/service/v1/project_service_pb.js";
import { RunnerConfigurationService as RunnerConfigurationContract } from "#gen/service/v1/runner_configuration_service_pb.js";
import { RunnerService as RunnerContract } from "#gen/service/v1/runner_service_pb.js";
import { UserService as UserContract } from "#gen/service/v1/user_service_pb.js";
import type { Caller } from "../../src/domain/identity/caller.ts";
import { RunnerService } from "../../src/services/access/runner-service.ts";
import { UserService } from "../../src/services/access/user-service.ts";
import { runsInEnvironment as runs } from "../../src/services/agent/reading/runs-in-environment.ts";
import { EnvironmentService } from "../../src/services/environment/environment-service.ts";
import { IdentityService } from "../../src/services/identity/identity-service.ts";
import { PrebuildService } from "../../src/services/project/prebuild-service.ts";
import { ProjectService } from "../../src/services/project/project-service.ts";
import { RunnerConfigurationService } from "../../src/services/runner/runner-configuration-service.ts";
import { findEnvironment } from "../../src/store/environment/environment.ts";
import { operationsOf, type TestStore } from "../harness/test-store.ts";

/** Everything a caller can do, and what the tests often need done. */
export function servicesOf({ deps }: TestStore, caller: Caller) {
  const projects = operationsOf(ProjectContract, new ProjectService({ ...deps, findEnvironment }), caller);
  const draining = new AbortController().signal;
  const unused = () => Promise.reject(new Error("these tests push nothing"));
  const pushes = { pushEnvironmentBranch: unused, openPullRequest: unused };
  const environments = operationsOf(
    EnvironmentContract,
    new EnvironmentService({ ...deps, draining, runs, pushes }),
    caller,
  );
  const runners = operationsOf(RunnerContract, new RunnerService({ ...deps, draining }), caller);
  const configuration = operationsOf(
    RunnerConfigurationContract,
    new RunnerConfigurationService(deps),
    caller,
  );
  return {
    projects,
    prebuilds: operationsOf(PrebuildContract, new PrebuildService(deps), caller),
    environments,
    runners,
    configuration,
    users: operationsOf(UserContract, new UserService(deps), caller),
    identity: operationsOf(IdentityContract, new IdentityService(), caller),
    /** A project with one repository; its id. */
    async project(name: string): Promise<string> {
      const initializer = { specs: [gitSpec(`https://git.example.org/team/${name}.git`)] };
      const { project } = await projects.createProject({ name, initializer });
      return project?.id ?? "";
    },
    /** An environment of the project; its id. */
    async use(projectId: string): Promise<string> {
      const { environment } = await environments.createEnvironmentFromProject({ projectId });
      return environment?.id ?? "";
    },
    /** A runner with one class. */
    async runnerWithClass(name: string): Promise<{ runnerId: string; classId: string }> {
      const { runner } = await runners.createRunner({ name });
      const runnerId = runner?.runnerId ?? "";
      const { id } = await configuration.createEnvironmentClass({
        runnerId,
        displayName: `${name} class`,
        description: "for tests",
      });
      return { runnerId, classId: id };
    },
  };
}

export type Services = ReturnType<typeof servicesOf>;

export function gitSpec(remoteUri: string) {
  return { spec: { case: "git", value: { remoteUri } } } as const;
}

/** An entry of a project's environment classes. */
export function classEntry(classId: string, order = 0) {
  return { environmentClass: { case: "environmentClassId", value: classId }, order } as const;
}
