import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { ProjectSchema } from "#gen/service/v1/project_pb.js";
import { EnvironmentClassSchema } from "#gen/service/v1/runner_configuration_pb.js";
import { UpdateEnvironmentClassRequestSchema } from "#gen/service/v1/runner_configuration_service_pb.js";
import { requireClassEnabled, updatedEnvironmentClass, withoutClasses } from "./environment-class.ts";

const present = create(EnvironmentClassSchema, {
  displayName: "Large",
  description: "for builds",
  enabled: true,
});

describe("an update of an environment class", () => {
  test.each([
    [{ displayName: "Larger" }],
    [{ description: "for tests" }],
    [{ enabled: false }],
    [{ displayName: "Larger", description: "for tests", enabled: false }],
  ])("sets %j and nothing else", (changes) => {
    const after = updatedEnvironmentClass(present, create(UpdateEnvironmentClassRequestSchema, changes));
    expect(after).toEqual(create(EnvironmentClassSchema, { ...present, ...changes }));
  });

  test.each([[{}], [{ displayName: "Large", enabled: true }]])("changes nothing with %j", (changes) => {
    expect(
      updatedEnvironmentClass(present, create(UpdateEnvironmentClassRequestSchema, changes)),
    ).toBeUndefined();
  });
});

describe("a disabled class", () => {
  test("takes no new environments, and an enabled one does", () => {
    expect(() => requireClassEnabled(present)).not.toThrow();
    expect(() => requireClassEnabled(create(EnvironmentClassSchema, { enabled: false }))).toThrow(
      expect.objectContaining({ reason: ErrorReason.PHASE_UNSUITABLE }),
    );
  });
});

describe("a project whose classes go", () => {
  const classEntry = (value: string) =>
    ({ environmentClass: { case: "environmentClassId", value } }) as const;
  const localEntry = { environmentClass: { case: "localRunner", value: true } } as const;

  test("keeps its other entries, and the first of them as its deprecated class", () => {
    const entries = [classEntry("a"), localEntry, classEntry("b"), classEntry("c")];
    const project = create(ProjectSchema, {
      metadata: {},
      environmentClasses: entries,
      environmentClass: entries[0] ?? {},
      prebuildConfiguration: { enabled: true, environmentClassIds: ["a", "b", "d"] },
    });
    const after = withoutClasses(project, new Set(["a", "c"]), 1_000);
    expect(after.environmentClasses).toMatchObject([localEntry, classEntry("b")]);
    expect(after.environmentClass).toMatchObject(localEntry);
    expect(after.prebuildConfiguration).toMatchObject({ enabled: true, environmentClassIds: ["b", "d"] });
    expect(after.metadata?.updatedAt).toEqual(timestampFromMs(1_000));
    expect(project.environmentClasses).toHaveLength(4);
  });

  test("has an empty deprecated class when none is left", () => {
    const project = create(ProjectSchema, { environmentClasses: [classEntry("a")] });
    const after = withoutClasses(project, new Set(["a"]), 0);
    expect(after.environmentClasses).toEqual([]);
    expect(after.environmentClass?.environmentClass).toEqual({ case: undefined });
  });
});
