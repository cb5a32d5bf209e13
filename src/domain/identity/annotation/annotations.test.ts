import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { AnnotationsSchema } from "#gen/service/v1/annotations_pb.js";
import {
  type Annotated,
  hasSameAnnotations,
  requireAnnotationsKnown,
  setAnnotations,
} from "./annotations.ts";

const annotated = (values: Record<string, string>): Annotated => ({
  annotations: create(AnnotationsSchema, { values }),
});

describe("annotations", () => {
  test("are replaced as a whole, removed by an empty message, and kept without one", () => {
    const resource: Annotated = {};
    setAnnotations(resource, annotated({ team: "a", tier: "1" }));
    expect(resource.annotations?.values).toEqual({ team: "a", tier: "1" });
    setAnnotations(resource, annotated({ team: "b" }));
    expect(resource.annotations?.values).toEqual({ team: "b" });
    setAnnotations(resource, {});
    expect(resource.annotations?.values).toEqual({ team: "b" });
    setAnnotations(resource, annotated({}));
    expect(resource).toEqual({});
  });

  test("are compared by their values", () => {
    expect(hasSameAnnotations({}, {})).toBe(true);
    expect(hasSameAnnotations(annotated({ team: "a" }), annotated({ team: "a" }))).toBe(true);
    expect(hasSameAnnotations(annotated({ team: "a" }), annotated({ team: "b" }))).toBe(false);
    expect(hasSameAnnotations(annotated({ team: "a" }), {})).toBe(false);
  });

  test("wait until every server knows them", () => {
    expect(() => requireAnnotationsKnown(annotated({ team: "a" }), false)).toThrow("once every server");
    expect(() => requireAnnotationsKnown({}, false)).not.toThrow();
    expect(() => requireAnnotationsKnown(annotated({ team: "a" }), true)).not.toThrow();
  });
});
