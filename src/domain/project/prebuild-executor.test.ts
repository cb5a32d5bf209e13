import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal, type Subject, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { type Project, ProjectSchema } from "#gen/service/v1/project_pb.js";
import type { Caller, Role } from "../identity/caller.ts";
import { requireMayPrebuildAs } from "./prebuild-executor.ts";

const subject = (id: string, principal = Principal.USER) => create(SubjectSchema, { id, principal });
const [ann, bob, eve] = [subject("ann"), subject("bob"), subject("eve")];
const robot = subject("robot", Principal.SERVICE_ACCOUNT);

const caller = (who: Subject, role: Role = "member"): Caller => ({
  organizationId: "o",
  subject: who,
  role,
  accountId: "",
  tokenId: "",
  readOnly: false,
});

/** Returns a project that ann created. */
function project(executor?: Subject, remoteUri = "https://git.example.org/a.git"): Project {
  return create(ProjectSchema, {
    metadata: { creator: ann },
    initializer: { specs: [{ spec: { case: "git", value: { remoteUri } } }] },
    ...(executor && { prebuildConfiguration: { executor } }),
  });
}

const reasonOf = (before: Project | undefined, after: Project, by: Caller) => {
  try {
    requireMayPrebuildAs(before, after, by);
    return undefined;
  } catch (error) {
    return ErrorReason[(error as { reason: ErrorReason }).reason];
  }
};

test("prebuilds run as the caller, the creator or a service account, and as nobody else", () => {
  for (const by of [caller(ann), caller(eve, "administrator")]) {
    for (const executor of [undefined, by.subject, ann, robot]) {
      expect(reasonOf(undefined, project(executor), by)).toBeUndefined();
      expect(reasonOf(project(), project(executor), by)).toBeUndefined();
    }
    expect(reasonOf(undefined, project(bob), by)).toBe("VALUE_UNUSABLE");
    expect(reasonOf(project(ann), project(bob), by)).toBe("VALUE_UNUSABLE");
  }
});

test("who was made executor stays it, and only administrators change what is cloned as another person", () => {
  const before = project(eve);
  const other = project(eve, "https://git.example.org/b.git");
  expect(reasonOf(before, project(eve), caller(ann))).toBeUndefined();
  expect(reasonOf(before, other, caller(ann))).toBe("PERMISSION_DENIED");
  expect(reasonOf(before, other, caller(eve))).toBeUndefined();
  expect(reasonOf(before, other, caller(bob, "administrator"))).toBeUndefined();
  expect(reasonOf(before, project(ann, "https://git.example.org/b.git"), caller(ann))).toBeUndefined();
  expect(
    reasonOf(project(robot), project(robot, "https://git.example.org/b.git"), caller(ann)),
  ).toBeUndefined();
});
