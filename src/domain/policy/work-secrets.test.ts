import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { EnvironmentSchema, EnvironmentPhase as Phase } from "#gen/service/v1/environment_pb.js";
import { SecretSchema } from "#gen/service/v1/secret_pb.js";
import { mayHaveSecrets, nearestSecrets } from "./work-secrets.ts";

type Mount = MessageInitShape<typeof SecretSchema>["mount"];
type Scope = "organizationId" | "projectId" | "userId" | "serviceAccountId";
const VARIABLE: Mount = { case: "environmentVariable", value: true };
const KEPT: Mount = { case: "apiOnly", value: true };
const file = (value: string): Mount => ({ case: "filePath", value });

const secret = (id: string, name: string, scope: Scope, mount: Mount = VARIABLE) => ({
  secret: create(SecretSchema, { id, name, mount, scope: { scope: { case: scope, value: "owner" } } }),
});
const chosen = (...all: ReturnType<typeof secret>[]) => nearestSecrets(all).map((each) => each.secret.id);

describe("of the secrets that work may have, it gets", () => {
  test("all, by name, where names and paths differ", () => {
    const [b, a] = [secret("1", "BOTH", "organizationId"), secret("2", "ALSO", "projectId", file("/a"))];
    expect(chosen(b, a, secret("3", "CASE", "userId", file("/b")))).toEqual(["2", "1", "3"]);
  });

  test.each<[Scope, Scope]>([
    ["organizationId", "projectId"],
    ["projectId", "userId"],
    ["organizationId", "userId"],
    ["projectId", "serviceAccountId"],
  ])("of one name, and of one path, not that of %s but that of %s", (wide, near) => {
    const names = [secret("wide", "NAME", wide), secret("near", "NAME", near, file("/key"))];
    const paths = [secret("wide", "ONE", wide, file("/key")), secret("near", "TWO", near, file("/key"))];
    for (const all of [names, paths]) {
      expect(chosen(...all)).toEqual(["near"]);
      expect(chosen(...all.toReversed())).toEqual(["near"]);
    }
  });

  test("none that stays with the service, which hides a wider one all the same", () => {
    expect(chosen(secret("1", "NAME", "organizationId"), secret("2", "NAME", "projectId", KEPT))).toEqual([]);
  });
});

test.each<[string, boolean, MessageInitShape<typeof EnvironmentSchema>]>([
  ["may have secrets", true, { spec: { desiredPhase: Phase.RUNNING } }],
  ["of an action from no fork may", true, action(false)],
  ["of an action from a fork may not", false, action(true)],
  ["of an action of which that is not known may not", false, action(undefined)],
  ["that is to stop may not", false, { spec: { desiredPhase: Phase.STOPPED } }],
  ["that is to be deleted may not", false, { spec: { desiredPhase: Phase.DELETED } }],
])("an environment %s", (_, may, environment) => {
  expect(mayHaveSecrets(create(EnvironmentSchema, environment))).toBe(may);
});

function action(secretsWithheld: boolean | undefined): MessageInitShape<typeof EnvironmentSchema> {
  const spec = { desiredPhase: Phase.RUNNING, workflowActionId: "action" };
  return { spec, metadata: secretsWithheld === undefined ? {} : { secretsWithheld } };
}
