import type { DescMessage } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError } from "./error.ts";

/**
 * Returns the fields that an update clears although it leaves them empty, as dotted paths in the
 * names of the .proto file. A mask adds to the fields that the request sets and never narrows it.
 * @param fixed top-level fields that no mask may name; `update_mask` is always one
 * @throws DomainError FIELD_MASK_INVALID for the first path that names no field, or a fixed one
 */
export function maskedPaths(
  request: DescMessage,
  mask: FieldMask | undefined,
  fixed: readonly string[],
): ReadonlySet<string> {
  const paths = mask?.paths ?? [];
  for (const path of paths) {
    const [first = ""] = path.split(".");
    if (first === "update_mask" || fixed.includes(first)) throw maskInvalid(path, "cannot be cleared");
    if (!namesField(request, path)) throw maskInvalid(path, "names no field of the request");
  }
  return new Set(paths);
}

/**
 * Returns the error for a path that the mask may not contain; the message quotes it as the mask
 * spells it.
 */
function maskInvalid(path: string, problem: string): DomainError {
  return new DomainError(
    ErrorReason.FIELD_MASK_INVALID,
    `the path ${JSON.stringify(path)} of updateMask ${problem}`,
    { path },
  );
}

function namesField(request: DescMessage, path: string): boolean {
  let message: DescMessage | undefined = request;
  for (const name of path.split(".")) {
    const field: DescMessage["fields"][number] | undefined = message?.fields.find(
      (each) => each.name === name,
    );
    if (!field) return false;
    // A path ends at a list or map: their elements have no path.
    message = field.fieldKind === "message" ? field.message : undefined;
  }
  return true;
}
