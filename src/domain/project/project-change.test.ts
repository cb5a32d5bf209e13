import { create, equals, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  type Project,
  ProjectEnvironmentClassSchema,
  ProjectPrebuildConfigurationSchema,
  ProjectSchema,
} from "#gen/service/v1/project_pb.js";
import {
  CLASS_A,
  CLASS_B,
  creator,
  entry,
  failure,
  fullProject,
  git,
  LATER_MS,
  origin,
  other,
  page,
  pending,
  update,
  withReason,
} from "../../../test/harness/project-fixture.ts";
import { deletedProject, newProject, templateFromEnvironment, withEnvironmentClasses } from "./project.ts";

describe("an update", () => {
  test("of nothing changes nothing, nor does one to what is there", () => {
    const present = fullProject();
    const { name = "" } = present.metadata ?? {};
    for (const request of [{}, { name, automationsFilePath: present.automationsFilePath }]) {
      expect(update(request, present)).toBe(present);
    }
    expect(equals(ProjectSchema, present, fullProject())).toBe(true);
  });

  test("leaves the project that it was given as it was", () => {
    const present = fullProject();
    update({ name: "other", devcontainerFilePath: "", recommendedEditors: {} }, present);
    expect(equals(ProjectSchema, present, fullProject())).toBe(true);
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
    expect(project.metadata?.updatedAt).toEqual(timestampFromMs(LATER_MS));
    expect(read(project)).toBe(value);
    const [key] = Object.keys(request);
    const back = { name: "harbour", ...fullProject() }[key as "name"];
    const expected = fullProject();
    if (expected.metadata) expected.metadata.updatedAt = timestampFromMs(LATER_MS);
    expect(equals(ProjectSchema, update({ [key as string]: back }, project), expected)).toBe(true);
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
    const gone = deletedProject(fullProject(), LATER_MS);
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

  test("are sorted by their order, those of equal order as they were given", () => {
    const CLASS_C = "0192d3c0-0000-7000-8000-0000000000a3";
    const classes = [
      entry(CLASS_B, 1),
      entry(true, -2_147_483_648),
      entry(CLASS_C, 2_147_483_647),
      entry(CLASS_A, 1),
    ];
    const project = withEnvironmentClasses(fullProject(), classes, LATER_MS);
    expect(ids(project)).toEqual([true, CLASS_B, CLASS_A, CLASS_C]);
    expect(project.environmentClass).toEqual(entry(true, -2_147_483_648));
    expect(project.metadata?.updatedAt).toEqual(timestampFromMs(LATER_MS));
    expect(ids(fullProject())).toEqual([CLASS_A]);
  });

  test("may be none, and the deprecated single one is then an empty message", () => {
    const project = withEnvironmentClasses(fullProject(), [], LATER_MS);
    expect(project.environmentClasses).toEqual([]);
    expect(project.environmentClass).toEqual(create(ProjectEnvironmentClassSchema));
  });

  test.each([
    ["a class is listed twice", [entry(CLASS_A, 1), entry(CLASS_B), entry(CLASS_A, 2)], 2],
    ["the local runner is listed twice", [entry(true), entry(true, 1)], 1],
    ["an entry names nothing", [entry(CLASS_A), create(ProjectEnvironmentClassSchema)], 1],
    [
      "an entry says that it is not the local runner",
      [create(ProjectEnvironmentClassSchema, { environmentClass: { case: "localRunner", value: false } })],
      0,
    ],
  ])("are refused where %s, and the first such entry is named", (_, classes, index) => {
    expect(failure(() => withEnvironmentClasses(fullProject(), classes, LATER_MS))).toEqual(
      withReason(ErrorReason.VALUE_UNUSABLE, { field: `projectEnvironmentClasses[${index}]` }),
    );
  });

  test("of a project pending deletion cannot be replaced", () => {
    const gone = deletedProject(fullProject(), LATER_MS);
    expect(gone && failure(() => withEnvironmentClasses(gone, [], LATER_MS))).toEqual(pending);
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

  test("is refused for an environment that a pull request from a fork began, or may have", () => {
    const spec = { content: { initializer } };
    const of = (init: MessageInitShape<typeof EnvironmentSchema>) => () =>
      templateFromEnvironment(create(EnvironmentSchema, init));
    const refused = withReason(ErrorReason.SECRETS_WITHHELD);
    expect(failure(of({ spec, metadata: { secretsWithheld: true } }))).toEqual(refused);
    const ofAction = { ...spec, workflowActionId: CLASS_B };
    expect(failure(of({ spec: ofAction }))).toEqual(refused);
    expect(of({ spec: ofAction, metadata: { secretsWithheld: false } })()).toMatchObject({ initializer });
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
