import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import {
  RunnerIsolation as Isolation,
  RunnerPhase as Phase,
  RunnerSchema,
} from "#gen/service/v1/runner_pb.js";
import { connectedRunner, inactiveRunner, isAvailable, registeredRunner } from "./runner-heartbeat.ts";

const runner = (phase: Phase, message = "", version = "1") =>
  create(RunnerSchema, {
    name: "r",
    spec: { desiredPhase: Phase.ACTIVE },
    status: { phase, message, version, systemDetails: "a shed" },
  });

describe("a sign of life", () => {
  test.each([
    [runner(Phase.ACTIVE), {}, undefined],
    [runner(Phase.ACTIVE), { version: "", degradedReason: "" }, undefined],
    [runner(Phase.ACTIVE), { version: "1" }, undefined],
    [runner(Phase.ACTIVE), { version: "2" }, { phase: Phase.ACTIVE, version: "2" }],
    [
      runner(Phase.ACTIVE),
      { degradedReason: "full" },
      { phase: Phase.DEGRADED, message: "full", version: "1" },
    ],
    [runner(Phase.DEGRADED, "full"), {}, undefined],
    [runner(Phase.DEGRADED, "full"), { degradedReason: "full" }, undefined],
    [runner(Phase.DEGRADED, "full"), { degradedReason: "slow" }, { phase: Phase.DEGRADED, message: "slow" }],
    [runner(Phase.DEGRADED, "full"), { degradedReason: "" }, { phase: Phase.ACTIVE, message: "" }],
    [runner(Phase.INACTIVE, "silent"), {}, { phase: Phase.ACTIVE, message: "" }],
    [
      runner(Phase.INACTIVE, "silent"),
      { degradedReason: "full" },
      { phase: Phase.DEGRADED, message: "full" },
    ],
  ])("of %j that says %j makes it %j", (present, news, expected) => {
    const heard = connectedRunner(present, news, 5);
    if (!expected) return expect(heard).toBe(undefined);
    expect(heard?.status).toMatchObject({ ...expected, systemDetails: "a shed" });
    expect(heard?.status?.updatedAt && timestampMs(heard.status.updatedAt)).toBe(5);
  });
});

test("a runner is shown as what it said, and as silent with what was known of it", () => {
  const registered = registeredRunner(runner(Phase.CREATED), { version: "3", systemDetails: "a barn" }, 1);
  expect(registered.status).toMatchObject({
    phase: Phase.ACTIVE,
    version: "3",
    systemDetails: "a barn",
    message: "",
  });
  expect(inactiveRunner(registered, 2).status).toMatchObject({
    phase: Phase.INACTIVE,
    version: "3",
    message: "the runner has not reported for 90 seconds",
  });
});

test("a runner is shown with the class of isolation that it said last", () => {
  const said = { version: "3", systemDetails: "a barn" };
  const registered = registeredRunner(runner(Phase.CREATED), { ...said, isolation: Isolation.BUBBLEWRAP }, 1);
  expect(registered.status?.isolation).toBe(Isolation.BUBBLEWRAP);
  for (const isolation of [undefined, Isolation.UNSPECIFIED, Isolation.BUBBLEWRAP])
    expect(connectedRunner(registered, { ...(isolation !== undefined && { isolation }) }, 2)).toBe(undefined);
  const changed = connectedRunner(registered, { isolation: Isolation.NONE }, 2);
  expect(changed?.status?.isolation).toBe(Isolation.NONE);
  expect(registeredRunner(runner(Phase.CREATED), said, 1).status?.isolation).toBe(undefined);
});

test("a runner takes work only while it is wanted active", () => {
  expect(isAvailable(runner(Phase.INACTIVE))).toBe(true);
  for (const desiredPhase of [Phase.INACTIVE, Phase.DELETING, Phase.DELETED]) {
    expect(isAvailable(create(RunnerSchema, { spec: { desiredPhase } }))).toBe(false);
  }
});
