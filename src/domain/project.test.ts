import { clone, create, equals, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { EnvironmentInitializerSchema, EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  type Project,
  ProjectEnvironmentClassSchema,
  ProjectPhase,
  ProjectPrebuildConfigurationSchema,
  ProjectSchema,
} from "#gen/service/v1/project_pb.js";
import { UpdateProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import {
  deletedProject,
  newProject,
  type Origin,
  projectRemotes,
  projectSearchText,
  refuseDeleted,
  templateFromEnvironment,
  updatedProject,
  withEnvironmentClasses,
} from "./project.ts";

const CREATED_MS = Date.UTC(2026, 0, 1);
const LATER_MS = CREATED_MS + 60_000;

const creator = create(SubjectSchema, {
  id: "0192d3c0-0000-7000-8000-0000000000c1",
  principal: Principal.USER,
});
const other = create(SubjectSchema, {
  id: "0192d3c0-0000-7000-8000-0000000000c2",
  principal: Principal.USER,
});
const origin: Origin = {
  id: "0192d3c0-0000-7000-8000-00000000000a",
  organizationId: "0192d3c0-0000-7000-8000-000000000001",
  creator,
  now: CREATED_MS,
};
const CLASS_A = "0192d3c0-0000-7000-8000-0000000000a1";
const CLASS_B = "0192d3c0-0000-7000-8000-0000000000a2";

const git = (...remotes: string[]) =>
  create(EnvironmentInitializerSchema, {
    specs: remotes.map((remoteUri) => ({ spec: { case: "git" as const, value: { remoteUri } } })),
  });
const page = (url: string) =>
  create(EnvironmentInitializerSchema, { specs: [{ spec: { case: "contextUrl", value: { url } } }] });
const entry = (id: string | true, order = 0) =>
  create(ProjectEnvironmentClassSchema, {
    environmentClass:
      id === true ? { case: "localRunner", value: true } : { case: "environmentClassId", value: id },
    order,
  });

/** A project with something in every field. */
const full = (): Project => {
  const project = newProject(
    {
      name: "harbour",
      initializer: git("https://git.example.org/team/harbour.git"),
      devcontainerFilePath: ".devcontainer/devcontainer.json",
      automationsFilePath: "automations.yaml",
      technicalDescription: "a harbour",
      prebuildConfiguration: create(ProjectPrebuildConfigurationSchema, {
        enabled: true,
        environmentClassIds: [CLASS_A],
        timeout: { seconds: 600n },
        executor: other,
      }),
      annotations: { team: "docks" },
      environmentClasses: [entry(CLASS_A)],
    },
    origin,
  );
  return updatedProject(
    project,
    create(UpdateProjectRequestSchema, { recommendedEditors: { editors: { vim: { versions: ["9"] } } } }),
    CREATED_MS,
  );
};
const update = (request: MessageInitShape<typeof UpdateProjectRequestSchema>, present = full()) =>
  updatedProject(present, create(UpdateProjectRequestSchema, request), LATER_MS);

const failure = (run: () => unknown): unknown => {
  try {
    return run();
  } catch (error) {
    return error;
  }
};
const withReason = (reason: ErrorReason, metadata: Record<string, string> = {}) =>
  expect.objectContaining({ reason, metadata });
const pending = withReason(ErrorReason.PENDING_DELETION, { resource: "project" });

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
    expect(full()).toMatchObject({
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
    [
      "the first of several",
      git("https://git.example.org/o/first", "https://git.example.org/o/second"),
      "first",
    ],
    [
      "a remote with control characters in its escapes",
      git("https://git.example.org/o/a%00%1fb%7f%C2%9Fc"),
      "abc",
    ],
  ])("comes from %s", (_, initializer, name) => {
    expect(nameOf(initializer)).toBe(name);
  });

  test("is cut to 80 characters, counting those outside of the first plane once", () => {
    expect(nameOf(git(`https://git.example.org/o/${"a".repeat(80)}.git`))).toBe("a".repeat(80));
    expect(nameOf(git(`https://git.example.org/o/${"a".repeat(81)}.git`))).toBe("a".repeat(80));
    expect(nameOf(git(`https://git.example.org/o/${"𝔸".repeat(81)}.git`))).toBe("𝔸".repeat(80));
    expect(nameOf(git(`https://git.example.org/o/%00${"a".repeat(80)}`))).toBe("a".repeat(80));
  });

  test.each([
    ["there is no spec", create(EnvironmentInitializerSchema)],
    ["the first spec is empty", create(EnvironmentInitializerSchema, { specs: [{}] })],
    ["the remote has no path", git("https://git.example.org")],
    [
      "the first of several remotes has no path",
      git("https://git.example.org", "https://git.example.org/o/r"),
    ],
    ["only control characters are left", git("https://git.example.org/o/%00%0a.git")],
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

describe("an update", () => {
  test("of nothing changes only the time", () => {
    const expected = full();
    if (expected.metadata) expected.metadata.updatedAt = timestampFromMs(LATER_MS);
    expect(equals(ProjectSchema, update({}), expected)).toBe(true);
  });

  test("leaves the project that it was given as it was", () => {
    const present = full();
    update({ name: "other", devcontainerFilePath: "", recommendedEditors: {} }, present);
    expect(equals(ProjectSchema, present, full())).toBe(true);
  });

  test.each([
    ["name", { name: "quay" }, (project: Project) => project.metadata?.name, "quay"],
    [
      "path of the devcontainer file",
      { devcontainerFilePath: "a" },
      (p: Project) => p.devcontainerFilePath,
      "a",
    ],
    [
      "path of the automations file",
      { automationsFilePath: "b" },
      (p: Project) => p.automationsFilePath,
      "b",
    ],
    ["technical description", { technicalDescription: "c" }, (p: Project) => p.technicalDescription, "c"],
  ])("of the %s changes nothing else", (_, request, read, value) => {
    const project = update(request);
    expect(read(project)).toBe(value);
    const [key] = Object.keys(request);
    const back = { name: "harbour", ...full() }[key as "name"];
    expect(equals(ProjectSchema, update({ [key as string]: back }, project), update({}))).toBe(true);
  });

  test.each([
    ["devcontainerFilePath" as const],
    ["automationsFilePath" as const],
    ["technicalDescription" as const],
  ])("with an empty %s clears it", (field) => {
    expect(update({ [field]: "" })[field]).toBe("");
  });

  test("replaces the initializer as a whole", () => {
    const initializer = page("https://git.example.org/team/quay");
    expect(update({ initializer }).initializer).toEqual(initializer);
  });

  test("does not rename a project whose initializer it replaces", () => {
    expect(update({ initializer: git("https://git.example.org/team/quay") }).metadata?.name).toBe("harbour");
  });

  test("replaces the prebuild configuration as a whole, what is unset in it takes its default", () => {
    expect(update({ prebuildConfiguration: {} }).prebuildConfiguration).toEqual(
      create(ProjectPrebuildConfigurationSchema, { timeout: { seconds: 3600n }, executor: creator }),
    );
  });

  test("replaces the recommended editors as a whole", () => {
    const project = update({ recommendedEditors: { editors: { emacs: {} } } });
    expect(Object.keys(project.recommendedEditors?.editors ?? {})).toEqual(["emacs"]);
    expect(project.recommendedEditors?.editors.emacs?.versions).toEqual([]);
  });

  test("with no editor in them clears the recommended editors", () => {
    expect(update({ recommendedEditors: {} })).not.toHaveProperty("recommendedEditors");
  });

  test("of a project pending deletion is refused", () => {
    const gone = deletedProject(full(), LATER_MS);
    expect(gone && failure(() => update({ name: "x" }, gone))).toEqual(pending);
  });
});

describe("prebuilds", () => {
  const prebuilds = (init: MessageInitShape<typeof ProjectPrebuildConfigurationSchema>) => {
    const prebuildConfiguration = create(ProjectPrebuildConfigurationSchema, init);
    const project = newProject({ name: "a", initializer: git("r"), prebuildConfiguration }, origin);
    return { given: prebuildConfiguration, kept: project.prebuildConfiguration };
  };

  test("are disabled, that is unset, when nothing is said of them", () => {
    expect(newProject({ name: "a", initializer: git("r") }, origin)).not.toHaveProperty(
      "prebuildConfiguration",
    );
  });

  test("take an hour at most and are run by the project's creator unless said otherwise", () => {
    expect(prebuilds({ enabled: true }).kept).toEqual(
      create(ProjectPrebuildConfigurationSchema, {
        enabled: true,
        timeout: { seconds: 3600n },
        executor: creator,
      }),
    );
  });

  test("keep the time, the executor and the classes that are given", () => {
    const { given, kept } = prebuilds({
      enabled: true,
      timeout: { seconds: 300n, nanos: 5 },
      executor: other,
      environmentClassIds: [CLASS_B, CLASS_A],
    });
    expect(kept).toEqual(given);
  });

  test("are completed without a change of the request", () => {
    expect(prebuilds({}).given).toEqual(create(ProjectPrebuildConfigurationSchema));
  });
});

describe("environment classes", () => {
  const ids = (project: Project) =>
    project.environmentClasses.map(({ environmentClass }) => environmentClass.value);

  test("stand by their order, those of equal order as they were given", () => {
    const CLASS_C = "0192d3c0-0000-7000-8000-0000000000a3";
    const classes = [
      entry(CLASS_B, 1),
      entry(true, -2_147_483_648),
      entry(CLASS_C, 2_147_483_647),
      entry(CLASS_A, 1),
    ];
    const project = withEnvironmentClasses(full(), classes, LATER_MS);
    expect(ids(project)).toEqual([true, CLASS_B, CLASS_A, CLASS_C]);
    expect(project.environmentClass).toEqual(entry(true, -2_147_483_648));
    expect(project.metadata?.updatedAt).toEqual(timestampFromMs(LATER_MS));
    expect(ids(full())).toEqual([CLASS_A]);
  });

  test("may be none, and the deprecated single one is then an empty message", () => {
    const project = withEnvironmentClasses(full(), [], LATER_MS);
    expect(project.environmentClasses).toEqual([]);
    expect(project.environmentClass).toEqual(create(ProjectEnvironmentClassSchema));
  });

  test.each([
    ["a class stands twice", [entry(CLASS_A, 1), entry(CLASS_B), entry(CLASS_A, 2)], 2],
    ["the local runner stands twice", [entry(true), entry(true, 1)], 1],
    ["an entry names nothing", [entry(CLASS_A), create(ProjectEnvironmentClassSchema)], 1],
    [
      "an entry says that it is not the local runner",
      [create(ProjectEnvironmentClassSchema, { environmentClass: { case: "localRunner", value: false } })],
      0,
    ],
  ])("are refused where %s, and the first such entry is named", (_, classes, index) => {
    expect(failure(() => withEnvironmentClasses(full(), classes, LATER_MS))).toEqual(
      withReason(ErrorReason.VALUE_UNUSABLE, { field: `projectEnvironmentClasses[${index}]` }),
    );
  });

  test("of a project pending deletion cannot be replaced", () => {
    const gone = deletedProject(full(), LATER_MS);
    expect(gone && failure(() => withEnvironmentClasses(gone, [], LATER_MS))).toEqual(pending);
  });
});

describe("deletion", () => {
  test("marks the project and its time, and leaves the rest", () => {
    const expected = clone(ProjectSchema, full());
    expected.desiredPhase = ProjectPhase.DELETED;
    if (expected.metadata) expected.metadata.updatedAt = timestampFromMs(LATER_MS);
    expect(deletedProject(full(), LATER_MS)).toEqual(expected);
  });

  test("of a project that is already marked changes nothing", () => {
    const gone = deletedProject(full(), LATER_MS);
    expect(gone && deletedProject(gone, LATER_MS + 1)).toBeUndefined();
  });

  test("refuses whatever asks for an active project", () => {
    const gone = deletedProject(full(), LATER_MS);
    expect(gone && failure(() => refuseDeleted(gone))).toEqual(pending);
    expect(failure(() => refuseDeleted(full()))).toBeUndefined();
  });
});

describe("a template from an environment", () => {
  const initializer = git("https://git.example.org/team/harbour.git");

  test("takes its initializer, class and paths", () => {
    const environment = create(EnvironmentSchema, {
      spec: {
        content: { initializer },
        machine: { class: CLASS_B },
        devcontainer: { devcontainerFilePath: "d.json" },
        automationsFile: { automationsFilePath: "a.yaml" },
      },
    });
    expect(newProject(templateFromEnvironment(environment), origin)).toMatchObject({
      metadata: { name: "harbour" },
      initializer,
      devcontainerFilePath: "d.json",
      automationsFilePath: "a.yaml",
      environmentClasses: [entry(CLASS_B)],
    });
  });

  test("has no class and no paths where the environment has none", () => {
    const environment = create(EnvironmentSchema, { spec: { content: { initializer } } });
    expect(newProject(templateFromEnvironment(environment), origin)).toMatchObject({
      devcontainerFilePath: "",
      automationsFilePath: "",
      environmentClasses: [],
    });
  });

  test.each([
    ["no spec", {}],
    ["no content", { spec: {} }],
    ["no initializer", { spec: { content: {} } }],
    ["an initializer without specs", { spec: { content: { initializer: {} } } }],
  ])("is refused for an environment with %s", (_, init) => {
    expect(failure(() => templateFromEnvironment(create(EnvironmentSchema, init)))).toEqual(
      withReason(ErrorReason.INITIALIZER_MISSING),
    );
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

  test("is no page address", () => {
    const project = newProject({ initializer: page("https://git.example.org/team/quay") }, origin);
    expect(projectRemotes(project)).toEqual([]);
    expect(projectSearchText(project)).toBe(`quay\n${origin.id}`);
  });
});
