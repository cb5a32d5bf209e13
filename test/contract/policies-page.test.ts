import { readFileSync } from "node:fs";
import { join } from "node:path";
import { create, type DescMessage, toJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { AgentPolicySchema, OrganizationPoliciesSchema } from "#gen/service/v1/organization_pb.js";
import { effectivePolicies } from "../../src/domain/policy/policies.ts";
import { CONTRACT } from "../../src/rpc/routes.ts";
import { OPERATIONS } from "../e2e/operations.ts";

interface Row {
  readonly field: string;
  readonly default: string;
  readonly kind: string;
  readonly how: string;
}

const PAGE = readFileSync(join(import.meta.dirname, "../../docs/policies.md"), "utf8");

/** The rows of the table under a heading. */
function rowsOf(heading: string): Row[] {
  const section = PAGE.split(`### ${heading}\n`)[1]?.split(/^##/m)[0] ?? "";
  return section.split("\n").flatMap((line) => {
    const [, field, value, kind, how] = /^\| `(\w+)` \| (.+?) \| (.+?) \| (.+) \|$/.exec(line) ?? [];
    return field && value && kind && how ? [{ field, default: value, kind, how }] : [];
  });
}

const operationsIn = (text: string) =>
  [...text.matchAll(/`(\w+Service\/\w+)`/g)].map((match) => match[1] ?? "");
const known = new Set(CONTRACT.flatMap(({ name, methods }) => methods.map((each) => `${name}/${each.name}`)));
const jobs = ["job/archive", "job/deletion", "job/lifetime"];

const effective = effectivePolicies("0190c0de-0000-7000-8000-000000000000", {
  policies: create(OrganizationPoliciesSchema),
  origins: {},
}).effective;
const defaults = toJson(OrganizationPoliciesSchema, effective, { alwaysEmitImplicit: true }) as {
  agentPolicy: object;
};

describe.each<[string, DescMessage, object]>([
  ["OrganizationPolicies", OrganizationPoliciesSchema, defaults],
  ["AgentPolicy", AgentPolicySchema, defaults.agentPolicy],
])("docs/policies.md on %s", (name, { fields }, values) => {
  const rows = rowsOf(name);

  test("has a row for each field, in the order of the contract, and none for anything else", () => {
    expect(rows.map(({ field }) => field)).toEqual(fields.map(({ jsonName }) => jsonName));
  });

  test("says what each field is before anybody sets it", () => {
    const listed = Object.fromEntries(rows.map(({ field, default: value }) => [field, value]));
    const actual = rows.map(({ field }) => {
      const value = (values as Record<string, unknown>)[field];
      if (field === "organizationId") return [field, "the organization's"];
      if (field === "agentPolicy") return [field, "the fields below"];
      return [field, value === undefined ? "unset" : `\`${JSON.stringify(value)}\``];
    });
    expect(listed).toEqual(Object.fromEntries(actual));
  });

  test("gives each field one of the kinds that the page explains", () => {
    const kinds = [...PAGE.matchAll(/^- \*\*(.+)\*\*:/gm)].map((match) => match[1]);
    expect(kinds).toEqual(["enforced", "handed on", "stored"]);
    expect(rows.filter(({ kind }) => !kinds.includes(kind))).toEqual([]);
  });

  test("names operations of the contract, built ones where it is enforced", () => {
    expect(rows.flatMap(({ how }) => operationsIn(how)).filter((each) => !known.has(each))).toEqual([]);
    const unfounded = rows.filter(({ kind, how }) => {
      if (kind !== "enforced") return false;
      return !(
        operationsIn(how).some((each) => OPERATIONS[each]?.built) || how.startsWith("In the background")
      );
    });
    expect(unfounded).toEqual([]);
  });
});

test("the page names the jobs by the operation under which they are recorded", () => {
  const sources = ["environment-archiving", "environment-deletion", "environment-lifetime"].map((name) =>
    readFileSync(join(import.meta.dirname, `../../src/jobs/${name}.ts`), "utf8"),
  );
  expect(
    jobs.filter((job, index) => !sources[index]?.includes(`"${job}"`) || !PAGE.includes(`\`${job}\``)),
  ).toEqual([]);
});
