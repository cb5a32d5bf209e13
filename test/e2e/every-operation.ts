import type { DescMethod } from "@bufbuild/protobuf";
import { CONTRACT } from "../../src/rpc/routes.ts";
import type { Operation } from "./operation.ts";
import { OPERATIONS } from "./operations.ts";

export interface NamedOperation extends Operation {
  /** Such as `ProjectService/GetProject`. */
  readonly name: string;
  readonly method: DescMethod;
}

/**
 * Every operation of the contract, by name, for test.each.
 *
 * @throws when the list in operations.ts leaves one out or names one that does
 *   not exist, so that no test that goes through it can pass
 */
export function everyOperation(): (readonly [string, NamedOperation])[] {
  const methods = new Map(
    CONTRACT.flatMap((service) => service.methods.map((each) => [`${service.name}/${each.name}`, each])),
  );
  const strangers = Object.keys(OPERATIONS).filter((name) => !methods.has(name));
  const missing = [...methods.keys()].filter((name) => OPERATIONS[name] === undefined);
  if (strangers.length > 0 || missing.length > 0) {
    throw new Error(
      `test/e2e/operations.ts lacks [${missing.join(", ")}] and names what the contract does not: [${strangers.join(", ")}]`,
    );
  }
  return [...methods].flatMap(([name, method]) => {
    const operation = OPERATIONS[name];
    return operation ? [[name, { name, method, ...operation }] as const] : [];
  });
}
