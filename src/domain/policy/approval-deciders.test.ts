import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { ApprovalDecidersSchema, ApprovalDeciders_Who as Who } from "#gen/service/v1/approval_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { deciders, mayDecide, requireSatisfiable } from "./approval-deciders.ts";

type Chosen = MessageInitShape<typeof ApprovalDecidersSchema>;

const user = (id: string) => create(SubjectSchema, { id, principal: Principal.USER });
const chosen = (init: Chosen) => create(ApprovalDecidersSchema, init);

describe("who may decide", () => {
  const may = (init: Chosen, id: string, isAdministrator = false) =>
    mayDecide(deciders(chosen(init)), user("starter"), user(id), isAdministrator);

  test.each<[string, Chosen, readonly [starter: boolean, administrator: boolean, named: boolean]]>([
    ["nobody in particular", {}, [true, true, false]],
    ["all but the starter", { excludesStarter: true }, [false, true, false]],
    ["administrators", { who: Who.ADMINISTRATORS }, [false, true, false]],
    ["users", { who: Who.USERS, userIds: ["named"] }, [false, false, true]],
    ["users, the starter among them", { who: Who.USERS, userIds: ["starter"] }, [true, false, false]],
  ])("of %s", (_, init, expected) => {
    expect([may(init, "starter"), may(init, "boss", true), may(init, "named")]).toEqual(expected);
  });

  test("is another principal with the id of a user not", () => {
    const named = deciders(chosen({ who: Who.USERS, userIds: ["named"] }));
    const runner = create(SubjectSchema, { id: "named", principal: Principal.RUNNER });
    expect(mayDecide(named, user("starter"), runner, false)).toBe(false);
  });
});

describe("deciders that are written", () => {
  const members = [
    { userId: "boss", isAdministrator: true },
    { userId: "ann", isAdministrator: false },
  ];
  const problem = (init: Chosen) => {
    try {
      requireSatisfiable(chosen(init), members, "x");
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  };

  test.each<[Chosen]>([
    [{}],
    [{ who: Who.ADMINISTRATORS }],
    [{ who: Who.USERS, userIds: ["ann"] }],
    [{ who: Who.USERS, userIds: ["ann", "boss"], required: 2 }],
    [{ who: Who.USERS, userIds: ["ann", "boss"], excludesStarter: true }],
  ])("can be satisfied: %j", (init) => {
    expect(problem(init)).toBeUndefined();
  });

  test.each<[Chosen, string]>([
    [{ required: 2 }, "needs 2 of"],
    [{ who: Who.ADMINISTRATORS, excludesStarter: true }, "needs 2 of"],
    [{ who: Who.USERS, userIds: ["gone"] }, "and 0 can decide"],
    [{ who: Who.USERS, userIds: ["ann", "ANN"], required: 2 }, "needs 2 of"],
    [{ who: Who.USERS }, "names nobody"],
    [{ userIds: ["ann"] }, "WHO_USERS only"],
  ])("could not: %j", (init, words) => {
    expect(problem(init)).toContain(words);
  });
});
