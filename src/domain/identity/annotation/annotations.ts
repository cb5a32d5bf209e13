import { equals } from "@bufbuild/protobuf";
import { type Annotations, AnnotationsSchema } from "#gen/service/v1/annotations_pb.js";
import { phaseUnsuitable } from "../../error.ts";

/** A message that may ask for annotations, and a resource that may have some. */
export interface Annotated {
  annotations?: Annotations | undefined;
}

/**
 * Requires that every server knows the annotations of resources before a request may set them.
 * @throws DomainError PHASE_UNSUITABLE while servers of the release before run
 */
export function requireAnnotationsKnown({ annotations }: Annotated, areKnown: boolean): void {
  if (areKnown || !annotations) return;
  throw phaseUnsuitable(
    "installation",
    "UPGRADING",
    "annotations can be set once every server runs this release",
  );
}

/** Replaces the annotations of a resource by those that a request has; an empty message removes them. */
export function setAnnotations(resource: Annotated, { annotations }: Annotated): void {
  if (!annotations) return;
  if (Object.keys(annotations.values).length > 0) resource.annotations = annotations;
  else delete resource.annotations;
}

/** Returns whether two resources have the same annotations. */
export function hasSameAnnotations(one: Annotated, other: Annotated): boolean {
  if (!one.annotations || !other.annotations) return one.annotations === other.annotations;
  return equals(AnnotationsSchema, one.annotations, other.annotations);
}
