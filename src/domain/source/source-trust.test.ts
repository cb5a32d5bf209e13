import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { type SourceSetter, uniqueSubjects, untrustedSetter } from "./source-trust.ts";

const subject = (id: string, principal = Principal.USER) => create(SubjectSchema, { id, principal });
const [ann, bob] = [subject("ann"), subject("bob")];
const robot = subject("robot", Principal.SERVICE_ACCOUNT);
const setBy = (who: typeof ann, role: SourceSetter["role"] = "other"): SourceSetter => ({
  subject: who,
  role,
});
const untrusted = (
  executor: typeof ann,
  setters: readonly SourceSetter[],
  namedBy?: typeof ann,
): string | undefined => untrustedSetter({ executor, namedBy, setters })?.id;

describe("a source", () => {
  test("is trusted when its setter is the executor, an administrator or a service account", () => {
    for (const setter of [setBy(ann), setBy(bob, "administrator"), setBy(robot, "service_account")]) {
      expect(untrusted(ann, [setter])).toBeUndefined();
    }
    expect(untrusted(ann, [setBy(bob)])).toBe("bob");
    expect(untrusted(ann, [setBy(robot)])).toBe("robot");
  });

  test("is trusted by a service account also when its setter named that, by a person not", () => {
    expect(untrusted(robot, [setBy(bob)], bob)).toBeUndefined();
    expect(untrusted(robot, [setBy(bob)], ann)).toBe("bob");
    expect(untrusted(robot, [setBy(bob)])).toBe("bob");
    expect(untrusted(ann, [setBy(bob)], bob)).toBe("bob");
  });

  test("is not trusted when one of several setters is not", () => {
    expect(untrusted(ann, [setBy(ann), setBy(bob), setBy(robot, "service_account")])).toBe("bob");
    expect(untrusted(ann, [])).toBeUndefined();
  });

  test("is not the executor's own when a subject of another kind has its id", () => {
    expect(untrusted(ann, [setBy(subject("ann", Principal.ENVIRONMENT))])).toBe("ann");
  });
});

test("subjects are unique by id and principal, in their order", () => {
  const namesake = subject("ann", Principal.SERVICE_ACCOUNT);
  expect(uniqueSubjects([ann, bob], [namesake, subject("ann")])).toEqual([ann, bob, namesake]);
});
