import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { ProjectPhase, ProjectSchema } from "#gen/service/v1/project_pb.js";
import { replay } from "../../../test/harness/seed.ts";
import {
  duePrebuild,
  isCompatibleInitializer,
  type Prebuild,
  prebuildHour,
  prebuildTimeoutMs,
} from "./prebuild.ts";

const DAY_MS = 24 * 3_600_000;
const NOON = Date.UTC(2026, 4, 5, 12);

type Init = NonNullable<MessageInitShape<typeof ProjectSchema>["prebuildConfiguration"]>;

const CONFIGURATION = {
  enabled: true,
  environmentClassIds: ["a"],
  trigger: { trigger: { case: "dailySchedule", value: { hourUtc: 3 } } },
} as const satisfies Init;

const project = (change: Init = {}, desiredPhase = ProjectPhase.ACTIVE) =>
  create(ProjectSchema, { desiredPhase, prebuildConfiguration: { ...CONFIGURATION, ...change } as Init });

describe("the hour of a project's prebuilds", () => {
  test("is that of its daily schedule, midnight too", () => {
    expect(prebuildHour(project())).toBe(3);
    const trigger = { trigger: { case: "dailySchedule", value: { hourUtc: 0 } } } as const;
    expect(prebuildHour(project({ trigger }))).toBe(0);
  });

  test.each([
    ["without a configuration", create(ProjectSchema, { desiredPhase: ProjectPhase.ACTIVE })],
    ["that is disabled", project({ enabled: false })],
    ["without classes", project({ environmentClassIds: [] })],
    ["without a trigger", project({ trigger: {} })],
    ["that is pending deletion", project({}, ProjectPhase.DELETED)],
  ])("is none for a project %s", (_, each) => {
    expect(prebuildHour(each)).toBeUndefined();
  });
});

test("a prebuild may take as long as its configuration says", () => {
  expect(prebuildTimeoutMs(project({ timeout: { seconds: 300n, nanos: 500_000_000 } }))).toBe(300_500);
});

describe("what is due", () => {
  test("is the latest instant, the same again from it on, until the next", () => {
    const { instantMs, nextMs } = duePrebuild(3, "some project", NOON);
    expect(new Date(instantMs).toISOString()).toMatch(/^2026-05-05T03:(0\d|1[0-4]):\d\d\.000Z$/);
    expect(nextMs).toBe(instantMs + DAY_MS);
    expect(duePrebuild(3, "some project", instantMs).instantMs).toBe(instantMs);
    expect(duePrebuild(3, "some project", nextMs - 1).instantMs).toBe(instantMs);
    expect(duePrebuild(3, "some project", nextMs).instantMs).toBe(nextMs);
  });

  test("is one instant however long nobody looked, and the next is always ahead", () => {
    const hour = fc.integer({ min: 0, max: 23 });
    const time = fc.integer({ min: 0, max: 4e12 });
    fc.assert(
      fc.property(hour, fc.uuid(), time, (hourUtc, id, nowMs) => {
        const { instantMs, nextMs } = duePrebuild(hourUtc, id, nowMs);
        expect(instantMs).toBeLessThanOrEqual(nowMs);
        expect(nextMs).toBeGreaterThan(nowMs);
        expect(nextMs - instantMs).toBe(DAY_MS);
      }),
      replay,
    );
  });
});

describe("a prepared workspace", () => {
  const initializer = (...remotes: string[]) =>
    create(EnvironmentInitializerSchema, {
      specs: remotes.map((remoteUri) => ({ spec: { case: "git" as const, value: { remoteUri } } })),
    });
  const prebuild: Prebuild = {
    id: "p",
    projectId: "q",
    environmentClassId: "c",
    runnerId: "r",
    executor: create(SubjectSchema),
    instantMs: 0,
    createdAtMs: 0,
    updatedAtMs: 0,
    changes: 0,
    state: "ready",
    failure: "",
    warning: "",
    initializer: initializer("one", "two"),
  };

  test("suits an environment of the same sources alone", () => {
    expect(isCompatibleInitializer(prebuild, initializer("one", "two"))).toBe(true);
    for (const other of [initializer("two", "one"), initializer("one"), undefined]) {
      expect(isCompatibleInitializer(prebuild, other)).toBe(false);
    }
    expect(isCompatibleInitializer({ ...prebuild, initializer: undefined }, initializer())).toBe(false);
  });
});
