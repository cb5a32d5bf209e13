import type { DescMessage, JsonObject } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { StartAgentRequestSchema as StartAgent } from "#gen/service/v1/agent_service_pb.js";
import {
  CreateEnvironmentRequestSchema as CreateEnvironment,
  CreateEnvironmentFromProjectRequestSchema as CreateEnvironmentFromProject,
} from "#gen/service/v1/environment_service_pb.js";
import {
  CreateProjectRequestSchema as CreateProject,
  UpdateProjectRequestSchema as UpdateProject,
} from "#gen/service/v1/project_service_pb.js";
import {
  CheckRepositoryAccessRequestSchema as CheckRepositoryAccess,
  ParseContextURLRequestSchema as ParseContextURL,
} from "#gen/service/v1/runner_service_pb.js";
import { StartWorkflowRequestSchema as StartWorkflow } from "#gen/service/v1/workflow_service_pb.js";
import { complaint, ID, withValue } from "./limit.ts";

type Place = readonly [DescMessage, path: string, JsonObject];

const INITIALIZERS = (
  [
    [CreateProject, "initializer", { initializer: {} }],
    [UpdateProject, "initializer", { projectId: ID }],
    [CreateEnvironment, "spec.content.initializer", {}],
    [CreateEnvironmentFromProject, "spec.content.initializer", { projectId: ID }],
  ] as const
).flatMap(([request, path, rest]) =>
  [{ git: { remoteUri: "https://a" } }, { contextUrl: {} }].flatMap((spec) => {
    const valid = withValue(rest, path, { specs: [spec] });
    const names = "git" in spec ? ["git.remoteUri", "git.upstreamRemoteUri"] : ["contextUrl.url"];
    return names.map((name): Place => [request, `${path}.specs[0].${name}`, valid]);
  }),
);

/** Where a request takes the address of a repository or a page, each with a request that is valid but for it. */
const PLACES: readonly Place[] = [
  ...INITIALIZERS,
  [
    StartWorkflow,
    "contextOverride.repositories.repositoryUrls.repoUrls[0]",
    { workflowId: ID, contextOverride: { repositories: { repositoryUrls: { repoUrls: [] } } } },
  ],
  [StartAgent, "codeContext.contextUrl.url", {}],
  [ParseContextURL, "contextUrl", {}],
  [CheckRepositoryAccess, "repositoryUrl", { runnerId: ID }],
];

const WITHOUT = [
  "https://git.example.org/team/app.git",
  "https://git.example.org:8443/team/app.git",
  "ssh://git@git.example.org:22/team/app.git",
  "https://user@git.example.org/team/app.git",
  "https://user:@git.example.org/team/app.git",
  "https://git.example.org/team/a:b@c",
  "https://git.example.org?team=a:b@c",
  "https://git.example.org#a:b@c",
  "ssh://git@[2001:db8::1]:22/team/app.git",
  "git@git.example.org:team/app.git",
  "git@git.example.org:8080@team/app.git",
  "file:///srv/git/a:b@c.git",
];

const WITH = [
  "https://user:word@git.example.org/team/app.git",
  "https://:word@git.example.org/team/app.git",
  "https://user:w:o:rd@git.example.org",
  "https://us@er:wo@rd@git.example.org/team/app.git",
  "ssh://git:word@[2001:db8::1]:22/team/app.git",
  "HTTP://user:word@git.example.org?x",
  "http::https://user:word@git.example.org/team/app.git",
];

describe.each(PLACES.map(([request, path, valid]) => [request.name, path, request, valid] as const))(
  "%s.%s",
  (_, path, request, valid) => {
    const isUri = /(?:\.url|Url)$/.test(path);
    const tell = (value: string) => complaint(request, withValue(valid, path, value));

    // The short form is a remote of git's and no URI, and two of the others are none either.
    test.each(WITHOUT.filter((value) => !isUri || value.includes("://")))("takes %s", (value) => {
      expect(tell(value)).toBeUndefined();
    });

    test.each(WITH)("refuses %s, without quoting it", (value) => {
      const message = tell(value);
      if (!isUri)
        expect(message).toMatch(/must not contain a password: store it as a host authentication token/);
      expect(message).toContain(path);
      expect(message).not.toContain("word@");
    });
  },
);

test("a context URL with a password is refused with what to do instead", () => {
  const [request, path, valid] = PLACES.find(([, each]) => each.endsWith("url")) ?? [];
  if (!request || !path) throw new Error("no place for a context URL");
  const message = complaint(request, withValue(valid ?? {}, path, WITH[0] ?? ""));
  expect(message).toMatch(/^URL must not contain a password: store it as a host authentication token/);
});
