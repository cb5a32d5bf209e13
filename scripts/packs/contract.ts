import { execFileSync } from "node:child_process";
import { join } from "node:path";
import {
  createFileRegistry,
  type DescField,
  type DescMethod,
  type DescService,
  fromBinary,
} from "@bufbuild/protobuf";
import {
  FileDescriptorSetSchema,
  MethodOptions_IdempotencyLevel as Idempotency,
} from "@bufbuild/protobuf/wkt";
import { getComments } from "@bufbuild/protoplugin";

export const ROOT = join(import.meta.dirname, "../..");

/** A service that clients call, such as `ProjectService`. */
export interface PackService {
  readonly name: string;
  /** The words of its name without the last, such as `agent` and `review`. */
  readonly words: readonly string[];
  readonly comment: string;
  readonly operations: readonly PackOperation[];
}

/** An operation of a service. */
export interface PackOperation {
  readonly method: DescMethod;
  readonly comment: string;
  /** Whether it changes something. */
  readonly hasEffect: boolean;
  readonly isStream: boolean;
  /** The field with the entries of a page; undefined where the operation is no list. */
  readonly entries: DescField | undefined;
}

/** Returns the services of a contract that clients call, by name. @param contract a checkout of this repository */
export function readServices(contract: string): PackService[] {
  const bytes = execFileSync(
    join(ROOT, "node_modules/.bin/buf"),
    ["build", "proto", "-o", "-#format=binpb"],
    {
      cwd: contract,
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
  const services = [...registry].filter((each) => each.kind === "service");
  return services
    .filter((each) => each.typeName.startsWith("service.v1."))
    .map(describeService)
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

function describeService(service: DescService): PackService {
  const words = service.name.replace(/Service$/, "").match(/[A-Z][a-z]+/g) ?? [];
  return {
    name: service.name,
    words: words.map((word) => word.toLowerCase()),
    comment: commentOf(service),
    operations: service.methods.map((method) => ({
      method,
      comment: commentOf(method),
      hasEffect: method.idempotency !== Idempotency.NO_SIDE_EFFECTS,
      isStream: method.methodKind === "server_streaming",
      entries: entriesOf(method),
    })),
  };
}

function entriesOf({ input, output }: DescMethod): DescField | undefined {
  if (input.field.pagination === undefined || output.field.pagination === undefined) return undefined;
  const lists = output.fields.filter(({ fieldKind }) => fieldKind === "list");
  if (lists.length !== 1) throw new Error(`${output.typeName} is a page of ${lists.length} lists`);
  return lists[0];
}

/** Returns the comment of an element of the contract, one paragraph of its lines. */
function commentOf(element: DescService | DescMethod): string {
  return (getComments(element).leading ?? "").trim().replaceAll(/\n /g, "\n").trim();
}

/** Returns a name of the contract in lower case with underscores, such as `parse_context_url`. */
export function snakeCase(name: string): string {
  const parted = name.replaceAll(/([a-z])([A-Z])/g, "$1_$2").replaceAll(/([A-Z])([A-Z][a-z])/g, "$1_$2");
  return parted.toLowerCase();
}
