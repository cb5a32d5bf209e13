import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { RunnerPolicy } from "#gen/service/v1/runner_pb.js";
import { supportedPolicies } from "../../src/runner/protocol/supported-policies.ts";

const ROOT = join(import.meta.dirname, "../..");
const CLASSES = [
  { name: "bubblewrap", keepsRules: true },
  { name: "container", keepsRules: false },
  { name: "none", keepsRules: false },
] as const;

/** The cells of the rows of a page that begin with a text. */
function rowsOf(page: string, beginning: string): string[][] {
  return readFileSync(join(ROOT, "docs", page), "utf8")
    .split("\n")
    .filter((line) => line.startsWith(`| ${beginning}`))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

describe("what each class keeps of policies is what the pages say", () => {
  const policies = Object.values(RunnerPolicy).filter(
    (each): each is RunnerPolicy => typeof each === "number" && each !== RunnerPolicy.UNSPECIFIED,
  );

  test("where a runner says it", () => {
    const rows = rowsOf("runners.md", "`RUNNER_POLICY_");
    const rowOf = (policy: RunnerPolicy) =>
      rows.find(([names]) => names?.split(", ").includes(`\`RUNNER_POLICY_${RunnerPolicy[policy]}\``));
    for (const policy of policies)
      expect([RunnerPolicy[policy], rowOf(policy)?.slice(2)]).toEqual([
        RunnerPolicy[policy],
        CLASSES.map((each) => (supportedPolicies(each).includes(policy) ? "yes" : "")),
      ]);
  });

  test.each([
    ["`vetoExecPolicy` that blocks", RunnerPolicy.VETO_EXEC],
    ["`vetoFilePolicy` that blocks", RunnerPolicy.VETO_FILE],
    ["executable rules of security policies", RunnerPolicy.SECURITY_POLICY],
    ["of these three what has to be watched", RunnerPolicy.VETO_EXEC_AUDIT],
    ["of these three what has to be watched", RunnerPolicy.VETO_FILE_AUDIT],
    ["of these three what has to be watched", RunnerPolicy.SECURITY_POLICY_AUDIT],
    ["`egress`", RunnerPolicy.EGRESS],
    ["`defaultEnvironmentImage`", RunnerPolicy.ENVIRONMENT_IMAGE],
    ["`securityAgentPolicy`", RunnerPolicy.SECURITY_AGENTS],
    ["a pull request from a fork: no secrets", RunnerPolicy.FORK_WORK],
    ["a pull request from a fork: its repositories", RunnerPolicy.FORK_EGRESS],
  ])("where its promises are, of %s", (beginning, policy) => {
    const [row] = rowsOf("security.md", beginning);
    expect(row?.slice(1, 4).map((cell) => cell.startsWith("kept"))).toEqual(
      CLASSES.map((each) => supportedPolicies(each).includes(policy)),
    );
  });
});
