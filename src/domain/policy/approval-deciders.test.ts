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
    mayDecide(deciders(chosen(init)), user("starter"), {
      subject: user(id),
      isAdministrator,
      groupIds: id === "grouped" ? ["team", "others"] : [],
    });

  test.each<
    [string, Chosen, readonly [starter: boolean, administrator: boolean, named: boolean, grouped: boolean]]
  >([
    ["nobody in particular", {}, [true, true, false, false]],
    ["all but the starter", { excludesStarter: true }, [false, true, false, false]],
    ["administrators", { who: Who.ADMINISTRATORS }, [false, true, false, false]],
    ["users", { who: Who.USERS, userIds: ["named"] }, [false, false, true, false]],
    ["users, the starter among them", { who: Who.USERS, userIds: ["starter"] }, [true, false, false, false]],
    ["the users of a group", { who: Who.USERS, groupIds: ["team"] }, [false, false, false, true]],
    [
      "users and a group",
      { who: Who.USERS, userIds: ["named"], groupIds: ["TEAM"] },
      [false, false, true, true],
    ],
    ["users of no group of theirs", { who: Who.USERS, groupIds: ["gone"] }, [false, false, false, false]],
  ])("of %s", (_, init, expected) => {
    expect([may(init, "starter"), may(init, "boss", true), may(init, "named"), may(init, "grouped")]).toEqual(
      expected,
    );
  });

  test("is another principal with the id of a user not", () => {
    const named = deciders(chosen({ who: Who.USERS, userIds: ["named"] }));
    const runner = create(SubjectSchema, { id: "named", principal: Principal.RUNNER });
    const asked = { subject: runner, isAdministrator: false, groupIds: [] };
    expect(mayDecide(named, user("starter"), asked)).toBe(false);
  });
});

describe("deciders that are written", () => {
  const members = [
    { userId: "boss", isAdministrator: true, groupIds: ["team"] },
    { userId: "ann", isAdministrator: false, groupIds: ["team", "one"] },
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
    [{ who: Who.USERS, groupIds: ["team"], required: 2 }],
    [{ who: Who.USERS, groupIds: ["one"] }],
    [{ who: Who.USERS, userIds: ["boss"], groupIds: ["one"], excludesStarter: true }],
  ])("can be satisfied: %j", (init) => {
    expect(problem(init)).toBeUndefined();
  });

  test.each<[Chosen, string]>([
    [{ required: 2 }, "needs 2 of"],
    [{ who: Who.ADMINISTRATORS, excludesStarter: true }, "needs 2 of"],
    [{ who: Who.USERS, userIds: ["gone"] }, "and 0 can decide"],
    [{ who: Who.USERS, userIds: ["ann", "ANN"], required: 2 }, "needs 2 of"],
    [{ who: Who.USERS }, "names nobody"],
    [{ userIds: ["ann"] }, "only with WHO_USERS"],
    [{ who: Who.USERS, groupIds: ["team"], required: 3 }, "needs 3 of"],
    [{ who: Who.USERS, userIds: ["ann"], groupIds: ["one"], required: 2 }, "and 1 can decide"],
    [{ who: Who.USERS, groupIds: ["empty"] }, "and 0 can decide"],
    [{ who: Who.ADMINISTRATORS, groupIds: ["team"] }, "x.groupIds has an effect only with WHO_USERS"],
  ])("could not: %j", (init, words) => {
    expect(problem(init)).toContain(words);
  });
});
