import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { AnswerRequestRequestSchema as Answer } from "#gen/runner/v1/environment_question_pb.js";
import {
  GetHostCredentialRequestSchema as Credential,
  FinishWorkRequestSchema as Finish,
  HeartbeatRequestSchema as Heartbeat,
  LeaseWorkRequestSchema as Lease,
  RegisterRequestSchema as Register,
  RenewLeaseRequestSchema as Renew,
  ReportProgressRequestSchema as Report,
} from "#gen/runner/v1/work_service_pb.js";
import {
  CheckRepositoryAccessRequestSchema as Access,
  UpdateRunnerRequestSchema as Change,
  ParseContextURLRequestSchema as Parse,
} from "#gen/service/v1/runner_service_pb.js";
import { brief, bytes, complaint, ID, lists, maps, texts, withValue } from "./limit.ts";

const LEASED = { leaseId: ID, fence: "1" };
const STEP = { stepIndex: 0, state: "STATE_RUNNING" };
const digits = (...counts: number[]) => counts.map((count) => "a".repeat(count));
const PUSH = { remote: "https://git.example.org/r.git", commit: "a".repeat(40) };

/** A valid request of each kind, into which the values are put. */
const VALID = new Map<DescMessage, JsonObject>([
  [Register, { environmentClass: { displayName: "class", description: "a class" } }],
  [Heartbeat, {}],
  [Change, { runnerId: ID, spec: {} }],
  [Parse, { contextUrl: "https://a" }],
  [Access, { runnerId: ID, repositoryUrl: "https://a" }],
  [Answer, { questionId: ID, instanceId: "i", remoteRead: {} }],
  [Lease, { maxLeases: 1 }],
  [Renew, LEASED],
  [Report, { ...LEASED, environment: {}, steps: [STEP], logs: [{}] }],
  [Finish, { ...LEASED, outcome: "OUTCOME_DONE", failure: {}, warnings: [{}], push: PUSH }],
  [Credential, { ...LEASED, host: "h" }],
]);

/** Returns addresses of so many characters. */
const uris = (...lengths: number[]) => lengths.map((length) => "https://a/".padEnd(length, "x"));

type Limit = readonly [
  request: DescMessage,
  path: string,
  passes: readonly JsonValue[],
  fails: readonly JsonValue[],
];

const LIMITS: readonly Limit[] = [
  [Register, "version", texts(0, 63, 64), texts(65)],
  [Register, "systemDetails", texts(0, 1023, 1024), texts(1025)],
  [Register, "environmentClass.displayName", texts(3, 4, 126, 127), texts(2, 128)],
  [Register, "environmentClass.description", texts(3, 4, 126, 127), texts(2, 128)],
  [Change, "runnerId", [ID], ["", "x"]],
  [Change, "name", texts(3, 4, 126, 127), [...texts(2, 128), "a\u0000bc"]],
  [Change, "spec.desiredPhase", [0, 3, 6], [-1, 7]],
  [Parse, "runnerId", ["", ID], ["x", `${ID}0`]],
  [Parse, "contextUrl", uris(2_046, 2_047, 2_048), [...uris(2_049), "", "x", "https://a:b@c"]],
  [Access, "runnerId", [ID], ["", "x", `${ID}0`]],
  [Access, "repositoryUrl", uris(2_046, 2_047, 2_048), [...uris(2_049), "", "x", "https://a:b@c"]],
  [Answer, "remoteRead.remote", texts(0, 2_055, 2_056), texts(2_057)],
  [Answer, "remoteRead.branch", texts(0, 1_023, 1_024), texts(1_025)],
  [Answer, "remoteRead.tag", texts(0, 1_023, 1_024), texts(1_025)],
  [Answer, "remoteRead.commit", texts(0, 63, 64), texts(65)],
  [Answer, "remoteRead.failure.reason", texts(0, 63, 64), texts(65)],
  [Answer, "remoteRead.failure.message", texts(0, 4_095, 4_096), texts(4_097)],
  [Answer, "remoteRead.pullRequest.title", texts(0, 499, 500), texts(501)],
  [Heartbeat, "version", texts(0, 63, 64), texts(65)],
  [Heartbeat, "degradedReason", texts(0, 1023, 1024), texts(1025)],
  [Lease, "maxLeases", [1, 2, 31, 32], [-1, 0, 33]],
  [Lease, "kinds", lists(1, 0, 9, 10), [...lists(1, 11), [99]]],
  [Lease, "environmentClassIds", lists(ID, 0, 99, 100), [...lists(ID, 101), ["x"]]],
  [Lease, "wait", ["0s", "0.001s", "59.999s", "60s"], ["-0.001s", "-1s", "60.001s", "61s"]],
  ...[Renew, Report, Finish, Credential].flatMap((request): Limit[] => [
    [request, "leaseId", [ID], ["", "x", `${ID}0`]],
    [request, "fence", ["1", "2", "9223372036854775807"], ["-1", "0"]],
  ]),
  [Report, "environment.phase", [0, 10, 80], [1, -1, 90]],
  [Report, "environment.failureMessage", texts(0, 4095, 4096), texts(4097)],
  [Report, "steps", lists(STEP, 0, 49, 50), lists(STEP, 51)],
  [Report, "steps[0].stepIndex", [0, 1, 48, 49], [-1, 50]],
  [Report, "steps[0].state", [0, 1, 3], [-1, 4]],
  [Report, "steps[0].pullRequestUrl", texts(0, 2047, 2048), texts(2049)],
  [Report, "steps[0].approvedPushDigest", texts(0, 63, 64), texts(65)],
  [Report, "steps[0].outputs", maps(0, 9, 10), maps(11)],
  [
    Report,
    "steps[0].outputs",
    texts(0, 49, 50).map((key) => ({ [key]: "" })),
    texts(51).map((key) => ({ [key]: "" })),
  ],
  [Report, "steps[0].outputs.key", bytes(0, 16_385, 16_386), bytes(16_387)],
  [Report, "steps[0].failure.reason", texts(0, 63, 64), texts(65)],
  [Report, "steps[0].failure.message", texts(0, 4095, 4096), texts(4097)],
  [Report, "logs", lists({}, 0, 15, 16), lists({}, 17)],
  [Report, "logs[0].stepIndex", [0, 1, 48, 49], [-1, 50]],
  [Report, "logs[0].offset", ["0", "1", "9223372036854775807"], ["-1"]],
  [Report, "logs[0].data", bytes(0, 65_535, 65_536), bytes(65_537)],
  [Finish, "outcome", [1, 2, 3, 4, 5], [-1, 0, 6]],
  [Finish, "failure.reason", texts(0, 63, 64), texts(65)],
  [Finish, "failure.message", texts(0, 4095, 4096), texts(4097)],
  [Finish, "warnings", lists({}, 0, 9, 10), lists({}, 11)],
  [Finish, "push.remote", texts(1, 2, 2047, 2048), texts(0, 2049)],
  [Finish, "push.commit", digits(40, 64), [...digits(0, 39, 41, 63, 65), "G".repeat(40)]],
  [Finish, "push.base", texts(0, 254, 255), texts(256)],
  [Credential, "host", texts(1, 258, 259), texts(0, 260)],
];

const cases = (pick: (limit: Limit) => readonly JsonValue[]) =>
  LIMITS.flatMap((limit) => {
    const [request, path] = limit;
    return pick(limit).map((value) => ({ request, path, value, title: brief(value) }));
  });
const complaintOf = ({ request, path, value }: ReturnType<typeof cases>[number]) =>
  complaint(request, withValue(VALID.get(request) ?? {}, path, value));

describe("what a runner says within a limit passes", () => {
  test.each(cases(([, , passes]) => passes))("$request.name $path: $title", (each) => {
    expect(complaintOf(each)).toBe(undefined);
  });
});

describe("what a runner says past a limit is refused", () => {
  test.each(cases(([, , , fails]) => fails))("$request.name $path: $title", (each) => {
    expect(complaintOf(each)).toEqual(expect.any(String));
  });
});
