import { create, type DescField, type DescMessage, toJson, toJsonString } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { afterAll, expect, test } from "@jest/globals";
import { EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { ProjectSchema } from "#gen/service/v1/project_pb.js";
import { findEnvironment, findStoredEnvironment } from "../../src/store/environment/environment.ts";
import { JSON_FORM } from "../../src/store/json.ts";
import {
  findProject,
  findStoredProject,
  findWholeProject,
  insertProject,
  updateProject,
} from "../../src/store/project/project.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { storedTextOf } from "../../src/store/stored-message.ts";
import { openTestStore } from "../harness/test-store.ts";
import { servicesOf } from "./services.ts";

const made = openTestStore();
afterAll(() => made.close());

test("what reads copy is what would be written of the message", async () => {
  const caller = await made.createOrganization("harbour");
  const own = servicesOf(made, caller);
  const { project } = await own.projects.createProject({
    name: 'a "quay"',
    initializer: {
      specs: [{ spec: { case: "git", value: { remoteUri: "https://git.example.org/a/b.git" } } }],
    },
    technicalDescription: "not shown by reads",
    annotations: { usedBy: "}" },
  });
  const id = project?.id ?? "";
  const db = made.store.reader;
  const before = JSON.parse(storedTextOf(await findStoredProject(db, caller, id)) ?? "");
  expect(before).toMatchObject({ technicalDescription: "", usedBy: { totalSubjects: 0, subjects: [] } });
  const environmentId = await own.use(id);

  const found = await findProject(db, caller, id);
  const text = JSON.parse(storedTextOf(await findStoredProject(db, caller, id)) ?? "");
  expect(text).toEqual(found && toJson(ProjectSchema, found, JSON_FORM));
  expect(text.usedBy.totalSubjects).toBe(1);

  const environment = await findEnvironment(db, caller, environmentId);
  const row = await findStoredEnvironment(db, caller, environmentId);
  expect(JSON.parse(storedTextOf(row?.environment) ?? "")).toEqual(
    environment && toJson(EnvironmentSchema, environment, JSON_FORM),
  );
  expect(row?.runnerId ?? "").toBe(environment?.metadata?.runnerId);
  const other = await made.createOrganization("other");
  expect(await findStoredProject(db, other, id)).toBeUndefined();
  expect(await findStoredEnvironment(db, other, environmentId)).toBeUndefined();
});

test("a long project is read whole, once there is room for long texts", async () => {
  const caller = await made.createOrganization("long");
  const annotations = Object.fromEntries(
    Array.from({ length: 32 }, (_, index) => [`key ${index}`, `é${index}`.repeat(150)]),
  );
  const { project } = await servicesOf(made, caller).projects.createProject({
    name: "long",
    initializer: {
      specs: [{ spec: { case: "git", value: { remoteUri: "https://git.example.org/a/b.git" } } }],
    },
    annotations,
  });
  const id = project?.id ?? "";
  const db = made.store.reader;
  const room = Promise.withResolvers<void>();
  let asked = 0;
  const reading = findStoredProject(db, caller, id, () => {
    asked += 1;
    return room.promise;
  });
  const isRead = await Promise.race([
    reading.then(() => true),
    findProject(db, caller, id).then(() => false),
  ]);
  room.resolve();
  const text = JSON.parse(storedTextOf(await reading) ?? "");
  expect([asked, isRead]).toEqual([1, false]);
  expect(text.metadata.annotations).toEqual(annotations);
  const found = await findProject(db, caller, id);
  expect(text).toEqual(found && toJson(ProjectSchema, found, JSON_FORM));
});

/** Fields that appear in JSON although nobody set them, of a message and of all in it. */
function alwaysThere(message: DescMessage, seen = new Set<DescMessage>()): string[] {
  if (seen.has(message)) return [];
  seen.add(message);
  const isShown = (field: DescField) =>
    field.fieldKind === "list" ||
    field.fieldKind === "map" ||
    field.presence === FeatureSet_FieldPresence.IMPLICIT;
  const own = message.fields
    .filter((field) => !field.oneof && isShown(field))
    .map(({ jsonName }) => jsonName);
  const inner = message.fields.flatMap((field) =>
    field.message && !field.message.typeName.startsWith("google.") ? alwaysThere(field.message, seen) : [],
  );
  return [[`${message.typeName.replace("service.v1.", "")}:`, ...own].join(" "), ...inner];
}

// Rows that were stored before lack a field that is added here: a migration must write it into `body` first.
const SHOWN = `
Project: id devcontainerFilePath automationsFilePath technicalDescription desiredPhase environmentClasses
ProjectMetadata: organizationId name annotations
Subject: id principal
EnvironmentInitializer: specs
EnvironmentInitializer.Spec:
GitInitializer: remoteUri upstreamRemoteUri targetMode cloneTarget checkoutLocation
ContextURLInitializer: url
ProjectEnvironmentClass: order
Project.UsedBy: totalSubjects subjects
ProjectPrebuildConfiguration: enabled environmentClassIds enableIdeWarmup
PrebuildTrigger:
PrebuildTrigger.DailySchedule: hourUtc
RecommendedEditors: editors
EditorVersions: versions
Environment: id
EnvironmentMetadata: organizationId annotations name originalContextUrl projectId runnerId sessionId
EnvironmentSpec: specVersion desiredPhase admission securityPolicyId
EnvironmentSpec.Machine: session class
EnvironmentSpec.Content: session gitUsername gitEmail
EnvironmentSpec.Timeout:
EnvironmentSpec.DevContainer: session devcontainerFilePath
EnvironmentSpec.AutomationsFile: session automationsFilePath
EnvironmentStatus: statusVersion phase failureMessage warningMessage
`;

test("stored rows have every field that their message always shows", () => {
  const shown = new Set([ProjectSchema, EnvironmentSchema].flatMap((schema) => alwaysThere(schema)));
  expect([...shown].join("\n")).toBe(SHOWN.trim());
});

test("what a created or changed project is answered with is what would be written of its message", async () => {
  const caller = await made.createOrganization("lighthouse");
  const id = made.newId();
  const project = create(ProjectSchema, {
    id,
    desiredPhase: 1,
    metadata: { name: "a lamp", organizationId: caller.organizationId },
    technicalDescription: "shown by what creates and changes",
  });
  const written = await made.store.write(SYSTEM, "test", (tx) => insertProject(tx, caller, project));
  expect(storedTextOf(written)).toBe(toJsonString(ProjectSchema, project, JSON_FORM));

  await servicesOf(made, caller).use(id);
  await made.store.write(SYSTEM, "test", async (tx) => {
    const before = await findWholeProject(tx.db, caller, id);
    if (!before) throw new Error("the project is not there");
    const after = create(ProjectSchema, { ...before, automationsFilePath: "a.yaml" });
    const text = storedTextOf(await updateProject(tx, caller, before, after)) ?? "";
    expect(text).toBe(toJsonString(ProjectSchema, after, JSON_FORM));
    const read = JSON.parse(text);
    expect(read.technicalDescription).toBe("shown by what creates and changes");
    expect(read.usedBy.totalSubjects).toBe(1);
  });
});

test("responses with projects and environments carry the stored texts: nothing has read the messages on their way", async () => {
  const own = servicesOf(made, await made.createOrganization("undecoded"));
  const projectId = await own.project("pier");
  await own.use(projectId);
  const { environments } = await own.environments.listEnvironments({});
  const responses = [
    (await own.projects.createProject({ name: "quay" })).project,
    (await own.projects.getProject({ projectId })).project,
    (await own.projects.updateProject({ projectId, name: "mole" })).project,
    ...(await own.projects.listProjects({})).projects,
    ...(await own.projects.listProjects({ filter: { search: "mole" } })).projects,
    (await own.environments.getEnvironment({ environmentId: environments[0]?.id ?? "" })).environment,
    ...(await own.environments.listEnvironments({})).environments,
  ];
  expect(responses.length).toBe(3 + 2 + 1 + 1 + 1);
  for (const message of responses) expect(storedTextOf(message)).toMatch(/^\{"id":/);
});
