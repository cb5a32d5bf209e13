import { type Violation, ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema } from "#gen/service/v1/error_reason_pb.js";
import { StartError } from "../start-error.ts";
import { camelCase, type Path, problemsError } from "./folder.ts";
import { documentFieldOf } from "./kind.ts";
import type { SentChange } from "./plan.ts";

/**
 * Returns the error of changes that the server refused, with the file, the line and the field that it is about.
 * @param sent the changes, in their order
 */
export function locatedError(error: unknown, sent: readonly SentChange[]): unknown {
  if (!(error instanceof StartError)) return error;
  const refused = ConnectError.from(error.cause);
  const violations = refused.findDetails(ViolationsSchema).flatMap(({ violations: all }) => all);
  const placed = violations.flatMap((violation) => locatedViolation(violation, sent));
  if (placed.length > 0) return problemsError(placed);
  const [detail] = refused.findDetails(ErrorDetailSchema);
  const index = Number(detail?.metadata.change ?? Number.NaN);
  const change = sent[index];
  return change ? locatedAt(change, detail?.metadata.field ?? "", error) : error;
}

function locatedViolation({ field, message = "" }: Violation, sent: readonly SentChange[]) {
  const [list, request, ...inner] = field?.elements ?? [];
  if (list?.subscript.case !== "index" || !request) return [];
  const change = sent[Number(list.subscript.value)];
  const text = inner
    .map(({ fieldName, subscript }) => {
      const name = camelCase(fieldName ?? "");
      return subscript.case === "index" ? `${name}[${subscript.value}]` : name;
    })
    .join(".");
  return change ? problemOf(change, text, message) : [];
}

function locatedAt(change: SentChange, field: string, error: StartError): StartError {
  const [problem] = problemOf(change, field, error.message);
  if (problem) return problemsError([problem]);
  const { kind, name } = change.planned;
  return new StartError(`${kind.name}/${name}: ${error.message}`, {
    exitCode: error.exitCode,
    cause: error.cause,
  });
}

/** Returns the problem of a document; none for a resource that no document describes. */
function problemOf({ planned }: SentChange, field: string, message: string) {
  const { document, kind } = planned;
  if (!document) return [];
  const place = field === "" ? "" : documentFieldOf(kind, field);
  return [{ file: document.file, line: document.lineOf(pathOf(place)), field: place, message }];
}

function pathOf(text: string): Path {
  return (text.match(/[^.[\]]+/g) ?? []).map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}
