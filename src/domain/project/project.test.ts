import { clone, create, equals } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { ProjectPhase, ProjectSchema } from "#gen/service/v1/project_pb.js";
import {
  CLASS_A,
  CREATED_MS,
  creator,
  entry,
  failure,
  fullProject,
  git,
  LATER_MS,
  origin,
  page,
  pending,
  withReason,
} from "../../../test/harness/project-fixture.ts";
import {
  deletedProject,
  newProject,
  projectRemotes,
  projectSearchText,
  requireProjectNotPendingDeletion,
} from "./project.ts";

describe("a new project", () => {
  test("is active, belongs to its creator's organization, and has the defaults of everything not given", () => {
    const initializer = git("https://git.example.org/team/harbour.git");
    const expected = create(ProjectSchema, {
      id: origin.id,
      metadata: {
        organizationId: origin.organizationId,
        name: "harbour",
        creator,
        createdAt: timestampFromMs(CREATED_MS),
        updatedAt: timestampFromMs(CREATED_MS),
      },
      initializer,
      environmentClass: {},
      usedBy: {},
      desiredPhase: ProjectPhase.ACTIVE,
    });
    expect(equals(ProjectSchema, newProject({ initializer }, origin), expected)).toBe(true);
  });

  test("keeps what is given", () => {
    expect(fullProject()).toMatchObject({
      metadata: { name: "harbour", annotations: { team: "docks" } },
      devcontainerFilePath: ".devcontainer/devcontainer.json",
      automationsFilePath: "automations.yaml",
      technicalDescription: "a harbour",
      environmentClasses: [entry(CLASS_A)],
      environmentClass: entry(CLASS_A),
    });
  });
});

describe("the name of a project that is given none", () => {
  const nameOf = (initializer: ReturnType<typeof git>) => newProject({ initializer }, origin).metadata?.name;

  test.each([
    ["a git remote", git("https://git.example.org/team/harbour.git"), "harbour"],
    ["a remote in scp form", git("git@git.example.org:team/harbour.git"), "harbour"],
    ["a context URL", page("https://git.example.org/team/harbour?ref=main"), "harbour"],
    ["the page of a pull request", page("https://git.example.org/team/harbour/pull/7"), "harbour"],
    [
      "the first of several",
      git("https://git.example.org/o/first", "https://git.example.org/o/second"),
      "first",
    ],
    [
      "a remote with escapes, as they are written",
      git("https://git.example.org/o/hello%20world"),
      "hello%20world",
    ],
  ])("comes from %s", (_, initializer, name) => {
    expect(nameOf(initializer)).toBe(name);
  });

  test("is cut to 80 characters, counting those outside of the first plane once", () => {
    expect(nameOf(git(`https://git.example.org/o/${"a".repeat(80)}.git`))).toBe("a".repeat(80));
    expect(nameOf(git(`https://git.example.org/o/${"a".repeat(81)}.git`))).toBe("a".repeat(80));
    expect(nameOf(git(`https://git.example.org/o/${"𝔸".repeat(81)}.git`))).toBe("𝔸".repeat(80));
  });

  test.each([
    ["there is no spec", create(EnvironmentInitializerSchema)],
    ["the first spec is empty", create(EnvironmentInitializerSchema, { specs: [{}] })],
    ["the remote has no path", git("https://git.example.org")],
    [
      "the first of several remotes has no path",
      git("https://git.example.org", "https://git.example.org/o/r"),
    ],
    ["only the ending is left", git("https://git.example.org/o/.git")],
  ])("cannot be had when %s", (_, initializer) => {
    expect(failure(() => nameOf(initializer))).toEqual(
      withReason(ErrorReason.VALUE_UNUSABLE, { field: "name" }),
    );
  });

  test("is not looked for when one is given", () => {
    expect(
      newProject({ name: "given", initializer: git("https://git.example.org") }, origin).metadata?.name,
    ).toBe("given");
  });
});

describe("deletion", () => {
  test("marks the project and its time, and leaves the rest", () => {
    const expected = clone(ProjectSchema, fullProject());
    expected.desiredPhase = ProjectPhase.DELETED;
    if (expected.metadata) expected.metadata.updatedAt = timestampFromMs(LATER_MS);
    expect(deletedProject(fullProject(), LATER_MS)).toEqual(expected);
  });

  test("of a project that is already marked changes nothing", () => {
    const gone = deletedProject(fullProject(), LATER_MS);
    expect(gone && deletedProject(gone, LATER_MS + 1)).toBeUndefined();
  });

  test("refuses whatever asks for an active project", () => {
    const gone = deletedProject(fullProject(), LATER_MS);
    expect(gone && failure(() => requireProjectNotPendingDeletion(gone))).toEqual(pending);
    expect(failure(() => requireProjectNotPendingDeletion(fullProject()))).toBeUndefined();
  });
});

describe("what a project is found by", () => {
  const initializer = git(
    "git@git.example.org:team/Harbour.git",
    "https://git.example.org/other/harbour",
    "https://git.example.org/team/QUAY.git",
    "git@git.example.org:team/Harbour.git",
  );

  test("is its folded name, its id and each repository's name once, one a line", () => {
    const project = newProject({ name: "Ship YARD", initializer }, origin);
    expect(projectSearchText(project)).toBe(`ship yard\n${origin.id}\nharbour\nharbour\nquay`);
  });

  test("is every form of every remote once", () => {
    expect(projectRemotes(newProject({ initializer }, origin))).toEqual([
      "git@git.example.org:team/Harbour.git",
      "ssh://git@git.example.org/team/Harbour.git",
      "https://git.example.org/other/harbour",
      "https://git.example.org/team/QUAY.git",
    ]);
  });

  test("is no page address, only the repository that it leads to", () => {
    const pages = page("https://git.example.org/team/Quay/tree/main");
    const project = newProject({ name: "Pier", initializer: pages }, origin);
    expect(projectRemotes(project)).toEqual([]);
    expect(projectSearchText(project)).toBe(`pier\n${origin.id}\nquay`);
  });
});
