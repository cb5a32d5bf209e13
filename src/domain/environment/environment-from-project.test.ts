import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { AdmissionLevel, EnvironmentSpecSchema } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { ProjectPhase, ProjectSchema } from "#gen/service/v1/project_pb.js";
import { specFromProject, startsLocally } from "./environment-from-project.ts";

const CLASS = "019b76da-a800-7000-8000-000000000001";
const OTHER_CLASS = "019b76da-a800-7000-8000-000000000002";

const classEntry = (value: string) => ({ environmentClass: { case: "environmentClassId", value } }) as const;
const localEntry = { environmentClass: { case: "localRunner", value: true } } as const;
const git = (remoteUri: string) => ({ specs: [{ spec: { case: "git", value: { remoteUri } } as const }] });

const ship = create(ProjectSchema, {
  initializer: git("https://git.example.org/team/ship.git"),
  devcontainerFilePath: "dev.json",
  automationsFilePath: "automations.yaml",
  environmentClasses: [classEntry(CLASS), classEntry(OTHER_CLASS)],
});

function specOf(project = ship, requested?: MessageInitShape<typeof EnvironmentSpecSchema>) {
  return specFromProject(project, requested && create(EnvironmentSpecSchema, requested));
}

describe("the spec of an environment of a project", () => {
  test("is the project's when nothing is asked", () => {
    expect(specOf()).toMatchObject({
      machine: { class: CLASS },
      content: { initializer: git("https://git.example.org/team/ship.git") },
      devcontainer: { devcontainerFilePath: "dev.json" },
      automationsFile: { automationsFilePath: "automations.yaml" },
    });
  });

  test("has the request's own where that says something", () => {
    const requested = {
      machine: { class: OTHER_CLASS },
      content: { initializer: git("https://git.example.org/team/boat.git") },
      devcontainer: { devcontainerFilePath: "mine.json" },
      automationsFile: { automationsFilePath: "mine.yaml" },
      admission: AdmissionLevel.ORGANIZATION,
    };
    expect(specOf(ship, requested)).toMatchObject(requested);
  });

  test("keeps what the request adds to the project's", () => {
    expect(
      specOf(ship, {
        machine: { session: "m" },
        content: { gitUsername: "Captain" },
        devcontainer: { session: "d" },
        automationsFile: { session: "a" },
      }),
    ).toMatchObject({
      machine: { session: "m", class: CLASS },
      content: { gitUsername: "Captain", initializer: git("https://git.example.org/team/ship.git") },
      devcontainer: { session: "d", devcontainerFilePath: "dev.json" },
      automationsFile: { session: "a", automationsFilePath: "automations.yaml" },
    });
  });

  test("is blank when the request's initializer is empty", () => {
    expect(specOf(ship, { content: { initializer: {} } }).content?.initializer?.specs).toEqual([]);
  });

  test("says nothing that neither says", () => {
    const { machine, content, devcontainer, automationsFile } = specOf(create(ProjectSchema));
    expect([machine, content, devcontainer, automationsFile]).toEqual(Array(4).fill(undefined));
  });

  test("is not to be had from a project pending deletion", () => {
    const deleted = create(ProjectSchema, { desiredPhase: ProjectPhase.DELETED });
    expect(() => specOf(deleted)).toThrow(expect.objectContaining({ reason: ErrorReason.PENDING_DELETION }));
  });
});

describe("the local runner", () => {
  test.each([
    ["is meant when it comes first", [localEntry, classEntry(CLASS)], {}, true],
    ["is not meant when a class comes first", [classEntry(CLASS), localEntry], {}, false],
    ["is not meant when the request names a class", [localEntry], { machine: { class: CLASS } }, false],
    ["is not meant without any entry", [], {}, false],
  ])("%s", (_, environmentClasses, requested, expected) => {
    const project = create(ProjectSchema, { environmentClasses });
    expect(startsLocally(project, specOf(project, requested))).toBe(expected);
  });
});
