import { built, type Ids, type Operation } from "./operation.ts";
import type { World } from "./world.ts";
import { changesOf, connectionsOf, INSTANCE } from "./world-work.ts";

const leased = (world: World) => ({ leaseId: world.lease, fence: "1" });
const LEASED: Ids = { leaseId: "lease" };

const asRunner = (request: Operation["request"], ids: Ids = {}): Operation => ({
  ...built(request, ids),
  token: (world) => world.runnerToken,
});

/** What runners call. */
export const WORK_OPERATIONS: Readonly<Record<string, Operation>> = {
  "WorkService/Register": {
    ...built(() => ({
      version: "1.2.3",
      systemDetails: "a machine in the attic",
      local: false,
      environmentClass: { displayName: "Brought along", description: "made only for a runner without one" },
    })),
    token: (world) => world.exchangeToken,
  },
  "WorkService/Heartbeat": asRunner(() => ({ version: "1.2.4", degradedReason: "the disk is nearly full" })),
  "WorkService/BeginInstance": asRunner(() => ({ instanceId: INSTANCE })),
  "WorkService/LeaseWork": asRunner(
    (world) => ({
      maxLeases: 1,
      kinds: ["WORK_KIND_ENVIRONMENT"],
      environmentClassIds: [world.environmentClass],
      wait: "0s",
    }),
    { "environmentClassIds[]": "environmentClass" },
  ),
  "WorkService/RenewLease": asRunner(leased, LEASED),
  "WorkService/ReportProgress": asRunner(
    (world) => ({ ...leased(world), environment: { phase: "ENVIRONMENT_PHASE_STARTING" } }),
    LEASED,
  ),
  "WorkService/FinishWork": asRunner(
    (world) => ({ ...leased(world), outcome: "OUTCOME_DONE", warnings: [] }),
    LEASED,
  ),
  "WorkService/ReportWorks": asRunner(
    (world) => ({
      reports: [{ progress: { ...leased(world), environment: { phase: "ENVIRONMENT_PHASE_STARTING" } } }],
      lease: { maxLeases: 1, kinds: ["WORK_KIND_PREBUILD"], environmentClassIds: [world.environmentClass] },
    }),
    {
      "reports[].progress.leaseId": "lease",
      "reports[].finish.leaseId": "lease",
      "lease.environmentClassIds[]": "environmentClass",
    },
  ),
  "WorkService/RenewLeases": asRunner((world) => ({ leases: [leased(world)] }), {
    "leases[].leaseId": "lease",
  }),
  "WorkService/GetHostCredential": asRunner(
    (world) => ({ ...leased(world), host: "One.Example.org" }),
    LEASED,
  ),
  "EnvironmentWorkService/ReportEnvironmentChanges": asRunner((world) => changesOf(world.heldEnvironment), {
    environmentId: "heldEnvironment",
  }),
  "EnvironmentWorkService/ReportEnvironmentConnections": asRunner(
    (world) => connectionsOf(world.heldEnvironment),
    { environmentId: "heldEnvironment" },
  ),
  "EnvironmentWorkService/WatchRequests": asRunner(() => ({ instanceId: INSTANCE })),
  "EnvironmentWorkService/AnswerRequest": asRunner(
    (world) => ({ questionId: world.question, instanceId: INSTANCE, changesRefreshed: {} }),
    { questionId: "question" },
  ),
  // The question of a world asks for no push.
  "EnvironmentWorkService/GetQuestionCredential": {
    ...asRunner((world) => ({ questionId: world.question, host: "one.example.org" }), {
      questionId: "question",
    }),
    refusal: [404, "not_found"],
  },
};
