import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  AnswerRequestRequestSchema as Answer,
  WatchRequestsRequestSchema as Watch,
} from "#gen/runner/v1/environment_question_pb.js";
import { ReportEnvironmentConnectionsRequestSchema as Connections } from "#gen/runner/v1/environment_work_service_pb.js";
import {
  UpdateEnvironmentRequestSchema as Change,
  GetEnvironmentDiffRequestSchema as Diff,
  ListEnvironmentFilesRequestSchema as List,
  ReadEnvironmentFileRequestSchema as Read,
} from "#gen/service/v1/environment_service_pb.js";
import { brief, bytes, complaint, ID, lists, texts, withValue } from "./limit.ts";

const ASKED = { environmentId: ID };
const CONNECTION = { id: ID, host: "h", port: 1, endedAt: "2026-01-02T03:04:05Z" };
const ANSWER = { questionId: ID, instanceId: "i" };

/** A valid request of each kind, into which the values are put. */
const VALID = new Map<DescMessage, JsonObject>([
  [Change, ASKED],
  [Diff, ASKED],
  [List, ASKED],
  [Read, { ...ASKED, path: "p" }],
  [Watch, { instanceId: "i" }],
  [Connections, { ...ASKED, connections: [CONNECTION] }],
]);
const withAnswer = (answer: JsonObject): JsonObject => ({ ...ANSWER, ...answer });
const part = (filePart: JsonObject) => withAnswer({ filePart: { file: {}, ...filePart } });

const withName = { ...ASKED, metadata: {} };
const withParts = { ...ASKED, spec: { content: {}, devcontainer: {}, automationsFile: {}, timeout: {} } };

type Limit = readonly [
  request: DescMessage,
  path: string,
  passes: readonly JsonValue[],
  fails: readonly JsonValue[],
  valid?: JsonObject,
];

const LIMITS: readonly Limit[] = [
  [
    Diff,
    "commit",
    ["", "a".repeat(4), "F".repeat(63), "0".repeat(64)],
    ["a".repeat(3), "a".repeat(65), "main", "-aaaa"],
  ],
  [Change, "environmentId", [ID], ["", "x"]],
  [Change, "metadata.name", texts(0, 127, 128), [...texts(129), "a\u0000b"], withName],
  [Change, "spec.content.session", texts(0, 127, 128), texts(129), withParts],
  [Change, "spec.content.gitUsername", texts(0, 254, 255), texts(256), withParts],
  [Change, "spec.content.gitEmail", texts(0, 319, 320), texts(321), withParts],
  [Change, "spec.devcontainer.session", texts(0, 127, 128), texts(129), withParts],
  [Change, "spec.devcontainer.devcontainerFilePath", texts(0, 1023, 1024), [...texts(1025), "/a"], withParts],
  [Change, "spec.automationsFile.session", texts(0, 127, 128), texts(129), withParts],
  [
    Change,
    "spec.automationsFile.automationsFilePath",
    texts(0, 1023, 1024),
    [...texts(1025), "/a"],
    withParts,
  ],
  [
    Change,
    "spec.timeout.disconnected",
    ["0s", "1800s", "315360000s"],
    ["-1s", "1s", "1799.999s", "315360000.001s"],
    withParts,
  ],
  [List, "path", texts(0, 4095, 4096), texts(4097)],
  [Read, "path", texts(1, 2, 4095, 4096), texts(0, 4097)],
  [Read, "offset", ["0", "1", "9223372036854775807"], ["-1"]],
  [Read, "maxBytes", [0, 1, 1_048_575, 1_048_576], [-1, 1_048_577]],
  [Watch, "instanceId", texts(1, 63, 64), texts(0, 65)],
  [Answer, "instanceId", texts(1, 63, 64), texts(0, 65), withAnswer({ changesRefreshed: {} })],
  [Answer, "questionId", [ID], ["", "x"], withAnswer({ changesRefreshed: {} })],
  [Answer, "changesRefreshed", [{}], [null], ANSWER],
  [Answer, "fileList.files", lists({}, 0, 99, 100), lists({}, 101), withAnswer({ fileList: {} })],
  [Answer, "fileList.filesLeftOut", [0, 1], [-1], withAnswer({ fileList: {} })],
  [
    Answer,
    "fileList.files[0].name",
    texts(0, 1023, 1024),
    texts(1025),
    withAnswer({ fileList: { files: [{}] } }),
  ],
  [Answer, "commitDiff.files", lists({}, 0, 99, 100), lists({}, 101), withAnswer({ commitDiff: {} })],
  [Answer, "commitDiff.digest", texts(0, 63, 64), texts(65), withAnswer({ commitDiff: {} })],
  [Answer, "filePart.data", bytes(0, 1_048_575, 1_048_576), bytes(1_048_577), part({})],
  [Connections, "environmentId", [ID], ["", "x"]],
  [Connections, "connections", lists(CONNECTION, 0, 199, 200), lists(CONNECTION, 201)],
  [Connections, "connections[0].id", texts(1, 63, 64), texts(0, 65)],
  [Connections, "connections[0].host", texts(1, 299, 300), texts(0, 301)],
  [Connections, "connections[0].port", [1, 2, 65_534, 65_535], [0, -1, 65_536]],
  [Connections, "connections[0].rule", texts(0, 99, 100), texts(101)],
  [Connections, "connections[0].refusal", [0, 1, 4], [5]],
  [Connections, "connections[0].sentBytes", ["0", "1", "9223372036854775807"], ["-1"]],
  [Connections, "connections[0].receivedBytes", ["0", "1", "9223372036854775807"], ["-1"]],
  [Connections, "connections[0].endedAt", ["2026-01-02T03:04:05Z"], [null]],
  [Answer, "filePart.readBytes", [0, 1, 1_048_576], [-1, 1_048_577], part({})],
];

const cases = (pick: (limit: Limit) => readonly JsonValue[]) =>
  LIMITS.flatMap((limit) => {
    const [request, path, , , valid = VALID.get(request) ?? {}] = limit;
    return pick(limit).map((value) => ({ request, path, value, valid, title: brief(value) }));
  });
const complaintOf = ({ request, path, value, valid }: ReturnType<typeof cases>[number]) =>
  complaint(request, withValue(valid, path, value));

describe("what is asked and answered about an environment passes within a limit", () => {
  test.each(cases(([, , passes]) => passes))("$request.name $path: $title", (each) => {
    expect(complaintOf(each)).toBe(undefined);
  });
});

describe("what is asked and answered about an environment is refused past a limit", () => {
  test.each(cases(([, , , fails]) => fails))("$request.name $path: $title", (each) => {
    expect(complaintOf(each)).toEqual(expect.any(String));
  });
});
