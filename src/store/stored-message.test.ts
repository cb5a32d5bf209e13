import { clone, create, equals, fromBinary, isMessage, toBinary, toJsonString } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { type Project, ProjectSchema } from "#gen/service/v1/project_pb.js";
import { GetProjectResponseSchema } from "#gen/service/v1/project_service_pb.js";
import { toBody } from "./json.ts";
import { storedMessage, storedTextOf } from "./stored-message.ts";

const project: Project = create(ProjectSchema, {
  id: "id-of-quay",
  metadata: { name: "quay", annotations: { key: "value" } },
  environmentClasses: [{ order: 1, environmentClass: { case: "localRunner", value: true } }],
});
const text = toBody(ProjectSchema, project);
const stored = () => storedMessage(ProjectSchema, text);

test("it is the message of its text, in every form", () => {
  expect(stored()).toEqual(project);
  expect(equals(ProjectSchema, stored(), project)).toBe(true);
  expect(toJsonString(ProjectSchema, stored())).toBe(toJsonString(ProjectSchema, project));
  expect(fromBinary(ProjectSchema, toBinary(ProjectSchema, stored()))).toEqual(project);
  for (const copy of [clone(ProjectSchema, stored()), { ...stored() }, Object.assign({}, stored())]) {
    expect(copy).toEqual({ ...project });
    expect(storedTextOf(copy)).toBeUndefined();
  }
  expect(JSON.parse(JSON.stringify(stored()))).toMatchObject({ metadata: { name: "quay" } });
});

test("nothing is decoded while it is awaited and put into a response", async () => {
  const broken = await Promise.resolve(storedMessage(ProjectSchema, "no JSON"));
  expect(isMessage(broken, ProjectSchema)).toBe(true);
  expect(broken).not.toBeInstanceOf(Promise);
  const response = create(GetProjectResponseSchema, { project: broken });
  expect(storedTextOf(response.project)).toBe("no JSON");
  expect(() => response.project?.id).toThrow();
});

test("the text is made when it is asked for, and once", () => {
  let made = 0;
  const lazy = storedMessage(ProjectSchema, () => {
    made += 1;
    return text;
  });
  expect(made).toBe(0);
  expect([storedTextOf(lazy), storedTextOf(lazy)]).toEqual([text, text]);
  expect(lazy.id).toBe("id-of-quay");
  expect(made).toBe(1);
});

test.each<[string, (message: Project) => void]>([
  ["a field", (message) => void Object.assign(message, { desiredPhase: 1 })],
  ["a field of a field", ({ metadata }) => void Object.assign(metadata ?? {}, { name: "mole" })],
  ["a removed field", (message) => void delete message.metadata],
])("a change of %s counts, and the text no longer does", (_, change) => {
  const [message, expected] = [stored(), clone(ProjectSchema, project)];
  change(message);
  change(expected);
  expect(storedTextOf(message)).toBeUndefined();
  expect(toBody(ProjectSchema, message)).toBe(toBody(ProjectSchema, expected));
});

test("other values have no stored text", () => {
  for (const value of [project, undefined, null, "text", 1, [], {}])
    expect(storedTextOf(value)).toBeUndefined();
});
