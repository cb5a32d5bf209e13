import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { AnswerRequestRequestSchema as Answer } from "#gen/runner/v1/environment_question_pb.js";
import {
  GetQuestionCredentialRequestSchema as Credential,
  ReportEnvironmentChangesRequestSchema as Report,
} from "#gen/runner/v1/environment_work_service_pb.js";
import {
  ListAgentReviewDraftsRequestSchema as ListDrafts,
  ListAgentReviewsRequestSchema as ListReviews,
  UpdateAgentReviewDraftRequestSchema as UpdateDraft,
} from "#gen/service/v1/agent_review_service_pb.js";
import {
  GetEnvironmentDiffRequestSchema as Diff,
  ListEnvironmentFilesRequestSchema as Files,
  OpenPullRequestRequestSchema as Open,
  PushEnvironmentBranchRequestSchema as Push,
} from "#gen/service/v1/environment_service_pb.js";
import { UpdateOrganizationPoliciesRequestSchema as Policies } from "#gen/service/v1/organization_service_pb.js";
import { ListPullRequestsRequestSchema as List } from "#gen/service/v1/workflow_service_pb.js";
import { brief, complaint, ID, lists, texts, withValue } from "./limit.ts";

const ASKED = { environmentId: ID };
const RUN = { agentExecutionId: ID };
const id: readonly JsonValue[] = [ID];
const noId: readonly JsonValue[] = ["", "x", `${ID}0`];

/** A valid request of each kind, into which the values are put. */
const VALID = new Map<DescMessage, JsonObject>([
  [Push, ASKED],
  [Open, ASKED],
  [Diff, ASKED],
  [Files, ASKED],
  [List, {}],
  [ListReviews, RUN],
  [ListDrafts, RUN],
  [UpdateDraft, { draftId: ID, revision: "1" }],
  [Policies, { organizationId: ID, agentPolicy: { pushRules: { rules: [rule()] } } }],
  [Report, { environmentId: ID, repositories: [{}], diffs: [{ base: 1, files: [{}] }] }],
  [Answer, { questionId: ID, instanceId: "i", branchPushed: {} }],
  [Credential, { questionId: ID, host: "git.example.org" }],
]);

function rule(): JsonObject {
  return { branches: ["a"], effect: "EFFECT_ALLOW" };
}

type Limit = readonly [path: string, passes: readonly JsonValue[], fails: readonly JsonValue[]];

const pageSizes: Limit = ["pagination.pageSize", [0, 1, 99, 100], [-1, 101]];
const pushed: readonly Limit[] = [
  ["environmentId", id, noId],
  ["folder", texts(0, 4_095, 4_096), texts(4_097)],
  ["branch", texts(0, 254, 255), texts(256)],
  ["commitMessage", texts(0, 19_999, 20_000), texts(20_001)],
];
const ids = (path: string): Limit => [path, lists(ID, 0, 24, 25), [...lists(ID, 26), ["x"]]];
const [repository, file] = ["repositories[0]", "diffs[0].files[0]"];
const counts: Limit[] = [
  "changedFiles",
  "addedFiles",
  "deletedFiles",
  "renamedFiles",
  "addedLines",
  "deletedLines",
].map((name) => [`${repository}.counts.${name}`, [0, 1], [-1]]);

const LIMITS = new Map<DescMessage, readonly Limit[]>([
  [Push, pushed],
  [
    Open,
    [
      ...pushed,
      ["title", texts(0, 499, 500), texts(501)],
      ["body", texts(0, 19_999, 20_000), texts(20_001)],
      ["base", texts(0, 254, 255), texts(256)],
    ],
  ],
  [Diff, [["environmentId", id, noId], ["base", [0, 2], [3]], pageSizes]],
  [Files, [["environmentId", id, noId], pageSizes]],
  [
    List,
    [
      ids("filter.workflowExecutionIds"),
      ids("filter.workflowExecutionActionIds"),
      ids("filter.environmentIds"),
      ids("filter.agentExecutionIds"),
      ["filter.states", [...lists("STATE_OPEN", 0, 2, 3)], lists("STATE_OPEN", 4)],
      pageSizes,
    ],
  ],
  [ListReviews, [["agentExecutionId", id, noId], pageSizes]],
  [ListDrafts, [["agentExecutionId", id, noId], pageSizes]],
  [
    UpdateDraft,
    [
      ["draftId", id, noId],
      ["revision", ["1", "2", "9223372036854775807"], ["0", "-1"]],
      ["summary", texts(0, 8_191, 8_192), texts(8_193)],
      [
        "comments",
        lists({ path: "a", firstLine: 1, lastLine: 1, text: "x", digest: "0".repeat(64) }, 0, 39, 40),
        lists({ path: "a", firstLine: 1, lastLine: 1, text: "x", digest: "0".repeat(64) }, 41),
      ],
    ],
  ],
  [
    Policies,
    [
      ["agentPolicy.pushRules.rules", lists(rule(), 0, 99, 100), lists(rule(), 101)],
      ["agentPolicy.pushRules.rules[0].branches", lists("a", 1, 24, 25), lists("a", 0, 26)],
      ["agentPolicy.pushRules.rules[0].branches[0]", texts(1, 254, 255), texts(0, 256)],
      ["agentPolicy.pushRules.rules[0].effect", [1, 2, 3], [0, 4]],
    ],
  ],
  [
    Report,
    [
      ["environmentId", id, noId],
      ["repositories", lists({}, 0, 9, 10), lists({}, 11)],
      [`${repository}.folder`, texts(0, 4_095, 4_096), texts(4_097)],
      [`${repository}.baseCommit`, texts(0, 63, 64), texts(65)],
      [`${repository}.headCommit`, texts(0, 63, 64), texts(65)],
      [`${repository}.branch`, texts(0, 1_023, 1_024), texts(1_025)],
      [`${repository}.commitsAhead`, [0, 1], [-1]],
      [`${repository}.problem`, texts(0, 1_023, 1_024), texts(1_025)],
      ...counts,
      ["diffs", lists({ base: 1 }, 0, 1, 2), lists({ base: 1 }, 3)],
      ["diffs[0].base", [1, 2], [0, 3]],
      ["diffs[0].files", lists({}, 0, 1_999, 2_000), lists({}, 2_001)],
      ["diffs[0].filesLeftOut", [0, 1], [-1]],
      [`${file}.path`, texts(0, 16_383, 16_384), texts(16_385)],
      [`${file}.oldPath`, texts(0, 16_383, 16_384), texts(16_385)],
      [`${file}.kind`, [0, 4], [5]],
      [`${file}.addedLines`, ["0", "1"], ["-1"]],
      [`${file}.deletedLines`, ["0", "1"], ["-1"]],
      [`${file}.sizeBytes`, ["0", "1"], ["-1"]],
      [`${file}.patch`, texts(0, 524_287, 524_288), texts(524_289)],
      [`${file}.patchOmission`, [0, 4], [5]],
      [`${file}.oldMode`, texts(0, 5, 6), texts(7)],
      [`${file}.newMode`, texts(0, 5, 6), texts(7)],
    ],
  ],
  [
    Answer,
    [
      ["branchPushed.folder", texts(0, 4_095, 4_096), texts(4_097)],
      ["branchPushed.remote", texts(0, 2_047, 2_048), texts(2_049)],
      ["branchPushed.commit", texts(0, 63, 64), texts(65)],
      ["branchPushed.tip", texts(0, 63, 64), texts(65)],
      ["branchPushed.defaultBranch", texts(0, 1_023, 1_024), texts(1_025)],
      ["branchPushed.baseBranch", texts(0, 1_023, 1_024), texts(1_025)],
      ["branchPushed.outcome", [0, 4], [5]],
      ["branchPushed.failure.reason", texts(0, 63, 64), texts(65)],
      ["branchPushed.failure.message", texts(0, 4_095, 4_096), texts(4_097)],
    ],
  ],
  [Credential, [["questionId", id, noId]]],
]);

const cases = (pick: 1 | 2) =>
  [...LIMITS].flatMap(([request, limits]) =>
    limits.flatMap((limit) =>
      limit[pick].map((value) => ({ request, path: limit[0], value, title: brief(value) })),
    ),
  );
const complaintOf = ({ request, path, value }: ReturnType<typeof cases>[number]) =>
  complaint(request, withValue(VALID.get(request) ?? {}, path, value));

describe("what is changed, pushed and opened passes within a limit", () => {
  test.each(cases(1))("$request.name $path: $title", (each) => {
    expect(complaintOf(each)).toBe(undefined);
  });
});

describe("what is changed, pushed and opened is refused past a limit", () => {
  test.each(cases(2))("$request.name $path: $title", (each) => {
    expect(complaintOf(each)).toEqual(expect.any(String));
  });
});

test("what a runner tells of its progress is a stage and 0 to 100 percent", () => {
  const tell = (progress: JsonObject) => complaint(Answer, { questionId: ID, instanceId: "i", progress });
  for (const progress of [{}, { stage: 4 }, { percent: 1 }, { percent: 99 }, { percent: 100 }])
    expect([progress, tell(progress)]).toEqual([progress, undefined]);
  for (const progress of [{ stage: 5 }, { percent: -1 }, { percent: 101 }])
    expect([progress, tell(progress)]).toEqual([progress, expect.any(String)]);
});
