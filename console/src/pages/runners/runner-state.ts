import { RunnerIsolation } from "#gen/service/v1/runner_pb.js";

/** Words for what keeps the work of a runner in. */
export const ISOLATIONS: Readonly<Record<RunnerIsolation, string>> = {
  [RunnerIsolation.UNSPECIFIED]: "not reported",
  [RunnerIsolation.NONE]: "none",
  [RunnerIsolation.BUBBLEWRAP]: "sandbox (bubblewrap)",
  [RunnerIsolation.CONTAINER]: "container",
};
