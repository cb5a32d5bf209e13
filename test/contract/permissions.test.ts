import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import type { Role } from "../../src/domain/identity/caller.ts";
import { PERMISSIONS, permissionOf, READERS } from "../../src/domain/identity/permissions.ts";
import { CONTRACT } from "../../src/rpc/routes.ts";
import { ROOT } from "../harness/program.ts";

const page = readFileSync(join(ROOT, "docs/permissions.md"), "utf8");
const ROLES: readonly Role[] = [
  "administrator",
  "member",
  "service_account",
  "runner",
  "environment",
  "exchange",
];
const operations = CONTRACT.flatMap((service) =>
  service.methods.map((each) => `${service.name}/${each.name}`),
);

/** The cells of each row of the table under a heading, without its head. */
function rowsUnder(heading: string): string[][] {
  const section = page.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? "";
  return section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2)
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

describe("the table of permissions", () => {
  test("has a row for every operation of the contract, streams among them, and for nothing else", () => {
    expect(Object.keys(PERMISSIONS).toSorted()).toEqual(operations.toSorted());
  });

  test("says what is a caller's own wherever somebody has no more than that, and only there", () => {
    for (const [name, { grants, own }] of Object.entries(PERMISSIONS)) {
      expect([name, own !== undefined]).toEqual([name, Object.values(grants).includes("own")]);
    }
  });

  test("opens no operation of the contract that it does not know", () => {
    expect(() => permissionOf("service.v1.ProjectService/DropEverything")).toThrow("has no row for");
    expect(permissionOf("grpc.health.v1.Health/Check")).toBeUndefined();
  });
});

describe("docs/permissions.md", () => {
  test("has the rows of the table, each as the code has it, and no others", () => {
    const expected = Object.entries(PERMISSIONS).map(([name, { permission, grants, own, condition }]) => [
      name,
      `\`${permission}\``,
      ...ROLES.map((role) => (grants[role] === "none" ? "-" : grants[role])),
      own ?? "",
      condition ?? "",
    ]);
    expect(rowsUnder("Operations")).toEqual(expected);
  });

  test("says of every role what it reads, in the words of the code", () => {
    expect(rowsUnder("What readers see")).toEqual(
      ROLES.map((role) => [role.replace("_", " "), READERS[role]]),
    );
  });
});
