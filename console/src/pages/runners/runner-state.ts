import { RunnerIsolation } from "#gen/service/v1/runner_pb.js";

/** Labels for the isolation of a runner's work. */
export const ISOLATIONS: Readonly<Record<RunnerIsolation, string>> = {
  [RunnerIsolation.UNSPECIFIED]: "not reported",
  [RunnerIsolation.NONE]: "none",
  [RunnerIsolation.BUBBLEWRAP]: "sandbox (bubblewrap)",
  [RunnerIsolation.CONTAINER]: "container",
};
