import { expect } from "@jest/globals";
import { post } from "../../harness/call.ts";
import { registerRunner, succeeded } from "../../harness/fake-runner.ts";
import { addMember } from "../../harness/member.ts";
import { onCluster } from "../../harness/postgres-store.ts";
import type { TestServer } from "../../harness/server.ts";
import { outcomeOf, type Rule, times } from "./trial.ts";

/** Rules of members, environments and credentials. */
export const ORGANIZATION_RULES: readonly Rule[] = [
  [
    "an organization keeps an administrator of those that give up their role or leave",
    async ({ url, server, organizationId, userId, token }) => {
      const others = [1, 2, 3].map((number) => `administrator-${number}-of-${organizationId}@example.org`);
      const made = [];
      for (const email of others)
        made.push(await addMember(server, { organizationId, email, administrator: true }));
      const calls = [{ userId, token }, ...made].map((own, index) => (at: TestServer) => {
        const named = { organizationId, userId: own.userId };
        return index % 2
          ? post(at, "OrganizationService/RemoveMember", named, own.token).then(outcomeOf)
          : post(
              at,
              "OrganizationService/SetRole",
              { ...named, role: "ORGANIZATION_ROLE_MEMBER" },
              own.token,
            ).then(outcomeOf);
      });
      return {
        calls,
        outcomes: [...times(3, "done"), "LAST_ADMINISTRATOR"],
        async after() {
          const { rowCount } = await onCluster(
            url,
            `select from member where organization_id = '${organizationId}' and role = 1 and left_at is null`,
          );
          expect(rowCount).toBe(1);
        },
      };
    },
  ],
  [
    "a user has at most as many environments as the policy says",
    async ({ organizationId, call }) => {
      const policy = { organizationId, maximumEnvironmentsPerUser: "3" };
      await succeeded(call("OrganizationService/UpdateOrganizationPolicies", policy));
      const name = "EnvironmentService/CreateEnvironment";
      return {
        calls: times(12, (at: TestServer) => call(name, {}, at).then(outcomeOf)),
        outcomes: [...times(3, "done"), ...times(9, "POLICY_DENIED")],
        async after() {
          const { environments } = await succeeded(call("EnvironmentService/ListEnvironments"));
          expect(environments).toHaveLength(3);
        },
      };
    },
  ],
  [
    "a user runs at most as many environments as the policy says",
    async ({ organizationId, call }) => {
      const policy = { organizationId, maximumRunningEnvironmentsPerUser: "2" };
      await succeeded(call("OrganizationService/UpdateOrganizationPolicies", policy));
      const ids: string[] = [];
      while (ids.length < 9) {
        const { environment } = await succeeded(
          call("EnvironmentService/CreateEnvironment", {
            spec: { desiredPhase: "ENVIRONMENT_PHASE_STOPPED" },
          }),
        );
        ids.push(environment.id);
      }
      return {
        calls: ids.map(
          (environmentId) => (at: TestServer) =>
            call("EnvironmentService/StartEnvironment", { environmentId }, at).then(outcomeOf),
        ),
        outcomes: [...times(2, "done"), ...times(7, "POLICY_DENIED")],
      };
    },
  ],
  [
    "a subject has one credential for a host of a runner",
    async ({ server, call }) => {
      const { runnerId } = await registerRunner(server);
      const request = { runnerId, host: "git.example.org", token: "value" };
      const name = "RunnerConfigurationService/CreateHostAuthenticationToken";
      return {
        calls: times(9, (at: TestServer) => call(name, request, at).then(outcomeOf)),
        outcomes: times(9, "done"),
        async after() {
          const { tokens } = await succeeded(call("RunnerConfigurationService/ListHostAuthenticationTokens"));
          expect(tokens).toHaveLength(1);
        },
      };
    },
  ],
];
