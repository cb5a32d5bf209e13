import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { type Answer, reasonOf } from "../harness/call.ts";
import { decisionOf, type OrganizationWithPolicies, organizationWithPolicies } from "../harness/policies.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: ReachableServer;
let own: OrganizationWithPolicies;
let made = 0;
beforeAll(async () => {
  server = await startHostedServer();
});
beforeEach(async () => {
  made += 1;
  own = await organizationWithPolicies(server, `security-${made}`);
});
afterAll(stopAll);

const GOOD = {
  executables: {
    defaultEffect: "EFFECT_ALLOW",
    rules: [
      { path: "/usr/bin/ssh", effect: "EFFECT_BLOCK" },
      { path: "socat", effect: "EFFECT_BLOCK" },
    ],
  },
};
const rule = (path: string, effect = "EFFECT_BLOCK") => ({ executables: { rules: [{ path, effect }] } });

const WRONG_EFFECT = "must be EFFECT_BLOCK: no isolation enforces another effect";
/** Specs that can be stored and not assigned, with the field that is wrong and what is wrong with it. */
const UNASSIGNABLE: [object, string, string][] = [
  [{ ports: {} }, "spec.ports", "must be unset: only executables can be controlled"],
  [
    { ...GOOD, ports: { maxAdmissionLevel: "ADMISSION_LEVEL_EVERYONE" } },
    "spec.ports",
    "must be unset: only executables can be controlled",
  ],
  [
    { executables: { defaultEffect: "EFFECT_BLOCK" } },
    "spec.executables.defaultEffect",
    "must be unset or EFFECT_ALLOW: only named executables can be controlled",
  ],
  [
    { executables: { defaultEffect: "EFFECT_AUDIT" } },
    "spec.executables.defaultEffect",
    "must be unset or EFFECT_ALLOW: only named executables can be controlled",
  ],
  [rule("socat", "EFFECT_ALLOW"), "spec.executables.rules[0].effect", WRONG_EFFECT],
  [rule("socat", "EFFECT_AUDIT"), "spec.executables.rules[0].effect", WRONG_EFFECT],
  [
    { executables: { rules: [...GOOD.executables.rules, { path: "nc" }] } },
    "spec.executables.rules[2].effect",
    WRONG_EFFECT,
  ],
];

const call = (operation: string, body: object, token?: string) =>
  own.call(`SecurityService/${operation}SecurityPolic${operation === "List" ? "ies" : "y"}`, body, token);
const create = (spec: object, name = "No tunnels", token?: string) =>
  call("Create", { organizationId: own.organizationId, metadata: { name }, spec }, token);
const createEnvironment = (securityPolicyId?: string) =>
  own.call("EnvironmentService/CreateEnvironment", {
    ...(securityPolicyId && { spec: { securityPolicyId } }),
  });

/** What was made, or an error that says what was answered. */
function ok(answer: Answer): Answer["body"] {
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body;
}

const madeId = async (spec: object, name?: string): Promise<string> =>
  ok(await create(spec, name)).securityPolicy.id;

function expectUnassignable(answer: Answer, id: string, field: string, problem: string): void {
  expect([answer.status, answer.body.code, reasonOf(answer)]).toEqual([
    400,
    "failed_precondition",
    "SECURITY_POLICY_UNASSIGNABLE",
  ]);
  expect(answer.body.message).toBe(`the security policy cannot be assigned: ${field} ${problem}`);
  expect(answer.body.details[0].debug.metadata).toEqual({ security_policy_id: id, field, problem });
}

function expectInUse(answer: Answer, usedBy: string): void {
  expect([answer.status, reasonOf(answer)]).toEqual([400, "IN_USE"]);
  expect(answer.body.details[0].debug.metadata).toEqual({ resource: "security policy", used_by: usedBy });
}

describe("a security policy", () => {
  test("is created, read, renamed, changed and deleted", async () => {
    const { securityPolicy } = ok(await create(GOOD));
    const { id } = securityPolicy;
    expect(securityPolicy).toEqual({
      id,
      metadata: { name: "No tunnels" },
      spec: GOOD,
      organizationId: own.organizationId,
      createdAt: securityPolicy.createdAt,
      updatedAt: securityPolicy.createdAt,
    });
    expect(ok(await call("Get", { securityPolicyId: id }))).toEqual({ securityPolicy });
    const renamed = ok(
      await call("Update", { securityPolicyId: id, metadata: { name: "None" } }),
    ).securityPolicy;
    expect(renamed).toEqual({
      ...securityPolicy,
      metadata: { name: "None" },
      updatedAt: renamed.updatedAt,
    });
    const changed = ok(await call("Update", { securityPolicyId: id, spec: {} })).securityPolicy;
    expect([changed.metadata, changed.spec]).toEqual([{ name: "None" }, {}]);
    expect(ok(await call("Get", { securityPolicyId: id }))).toEqual({ securityPolicy: changed });
    expect(ok(await call("Delete", { securityPolicyId: id }))).toEqual({});
    for (const operation of ["Get", "Update", "Delete"]) {
      const answer = await call(operation, { securityPolicyId: id });
      expect([answer.status, answer.body.message]).toEqual([404, "security policy not found"]);
    }
  });

  test("is for members to read and for administrators to change", async () => {
    const { token } = own.member;
    const securityPolicyId = await madeId(GOOD);
    expect((await call("Get", { securityPolicyId }, token)).status).toBe(200);
    expect(ok(await call("List", {}, token)).securityPolicies).toHaveLength(1);
    for (const refused of [
      await create(GOOD, "mine", token),
      await call("Update", { securityPolicyId, metadata: { name: "mine" } }, token),
      await call("Delete", { securityPolicyId }, token),
    ]) {
      expect([refused.status, reasonOf(refused)]).toEqual([403, "PERMISSION_DENIED"]);
    }
    expect(ok(await call("Get", { securityPolicyId })).securityPolicy.metadata.name).toBe("No tunnels");
  });

  test.each(["/usr/bin/ssh", "/a", "ssh", "two words", "...", "/opt/.hidden/x"])(
    "takes the path %s",
    async (path) => {
      expect((await create(rule(path))).status).toBe(200);
    },
  );

  test.each([
    "",
    "usr/bin/ssh",
    "./ssh",
    "/",
    "//usr",
    "/usr/",
    "/usr/../bin",
    "..",
    ".",
    "/a/./b",
    "a\u0000b",
  ])("refuses the path %j", async (path) => {
    const answer = await create(rule(path));
    expect([answer.status, reasonOf(answer)]).toEqual([400, "CONSTRAINT_VIOLATED"]);
    expect(answer.body.message).toContain("spec.executables.rules[0].path");
  });

  test("takes 200 rules and no more, and a name of 80 characters", async () => {
    const rules = (count: number) => ({
      executables: { rules: Array.from({ length: count }, (_, index) => ({ path: `tool-${index}` })) },
    });
    expect((await create(rules(200))).status).toBe(200);
    expect(reasonOf(await create(rules(201)))).toBe("CONSTRAINT_VIOLATED");
    expect((await create(GOOD, "n".repeat(80))).status).toBe(200);
    for (const name of ["", "n".repeat(81), "two\nlines"]) {
      expect(reasonOf(await create(GOOD, name))).toBe("CONSTRAINT_VIOLATED");
    }
  });

  test("is listed by id, narrowed by name, id and text, a page at a time", async () => {
    const ids: string[] = [];
    for (const name of ["No Tunnels", "No compilers", "Straße"]) ids.push(await madeId(GOOD, name));
    const list = async (filter: object, pagination: object = {}) =>
      ok(await call("List", { filter, pagination }));
    const found = async (filter: object) =>
      (await list(filter)).securityPolicies.map(({ id }: { id: string }) => id);
    expect(await found({})).toEqual(ids);
    expect(await found({ organizationId: own.organizationId })).toEqual(ids);
    expect(await found({ search: "TUNNEL" })).toEqual([ids[0]]);
    expect(await found({ search: "no " })).toEqual(ids.slice(0, 2));
    expect(await found({ search: ids[2] })).toEqual([ids[2]]);
    expect(await found({ search: "s\nN" })).toEqual([]);
    expect(await found({ securityPolicyIds: [ids[1], v7()] })).toEqual([ids[1]]);
    expect(await found({ securityPolicyIds: [ids[1]], search: "tunnel" })).toEqual([]);
    const first = await list({}, { pageSize: 2 });
    const second = await list({}, { pageSize: 2, token: first.pagination.nextToken });
    const pages = [first, second].map(({ securityPolicies }) =>
      securityPolicies.map(({ id }: { id: string }) => id),
    );
    expect(pages).toEqual([ids.slice(0, 2), ids.slice(2)]);
    expect(second.pagination.nextToken).toBe("");
  });

  test("belongs to the caller's organization alone", async () => {
    const other = await organizationWithPolicies(server, `security-other-${made}`);
    const securityPolicyId = await madeId(GOOD);
    const organizationId = own.organizationId;
    const foreign = await other.call("SecurityService/CreateSecurityPolicy", {
      organizationId,
      metadata: { name: "mine" },
      spec: GOOD,
    });
    expect([foreign.status, foreign.body.message]).toEqual([404, "organization not found"]);
    const assigned = await other.update({ securityPolicyId });
    expect([assigned.status, assigned.body.message]).toEqual([404, "security policy not found"]);
    const held = await other.call("EnvironmentService/CreateEnvironment", { spec: { securityPolicyId } });
    expect([held.status, held.body.message]).toEqual([404, "security policy not found"]);
    expect(ok(await other.call("SecurityService/ListSecurityPolicies", {})).securityPolicies).toEqual([]);
  });
});

describe("assigning a security policy to an organization's new environments", () => {
  test.each(UNASSIGNABLE)("is refused for %j, which can be stored", async (spec, field, problem) => {
    const id = await madeId(spec);
    expectUnassignable(await own.update({ securityPolicyId: id }), id, field, problem);
    expectUnassignable(await createEnvironment(id), id, field, problem);
    expect((await own.policies()).securityPolicyId).toBe("");
  });

  test.each([GOOD, {}, { executables: {} }])("is taken for %j", async (spec) => {
    const id = await madeId(spec);
    await own.set({ securityPolicyId: id.toUpperCase() });
    expect((await own.policies()).securityPolicyId).toBe(id);
  });

  test.each(UNASSIGNABLE)("refuses to update an assigned one to %j", async (spec, field, problem) => {
    const id = await madeId(GOOD);
    await own.set({ securityPolicyId: id });
    expectUnassignable(await call("Update", { securityPolicyId: id, spec }), id, field, problem);
    expect(ok(await call("Get", { securityPolicyId: id })).securityPolicy.spec).toEqual(GOOD);
    expect((await call("Update", { securityPolicyId: id, spec: rule("nc") })).status).toBe(200);
    await own.set({ securityPolicyId: "" });
    expect((await call("Update", { securityPolicyId: id, spec })).status).toBe(200);
  });

  test("reaches new environments, not those that exist, until it is cleared", async () => {
    const before = ok(await createEnvironment()).environment;
    const id = await madeId(GOOD);
    await own.set({ securityPolicyId: id });
    expect(ok(await createEnvironment()).environment.spec.securityPolicyId).toBe(id);
    expect(ok(await createEnvironment(id)).environment.spec.securityPolicyId).toBe(id);
    const { environment } = ok(
      await own.call("EnvironmentService/GetEnvironment", { environmentId: before.id }),
    );
    expect(environment.spec.securityPolicyId).toBe("");
    await own.set({ securityPolicyId: "" });
    expect(ok(await createEnvironment()).environment.spec.securityPolicyId).toBe("");
  });

  test("forbids environments with another one", async () => {
    const [id, other] = [await madeId(GOOD), await madeId(GOOD)];
    expect(ok(await createEnvironment(other)).environment.spec.securityPolicyId).toBe(other);
    await own.set({ securityPolicyId: id });
    const answer = await createEnvironment(other);
    expect([answer.status, reasonOf(answer)]).toEqual([400, "POLICY_DENIED"]);
    expect(decisionOf(answer)).toMatchObject({
      fieldPath: "securityPolicyId",
      valueInForce: JSON.stringify(id),
      valueAsked: JSON.stringify(other),
      allowed: `only ${id}`,
    });
  });
});

describe("deleting a security policy", () => {
  test("waits until no organization assigns it and no environment holds it", async () => {
    const id = await madeId(GOOD);
    await own.set({ securityPolicyId: id });
    const { environment } = ok(await createEnvironment());
    expectInUse(await call("Delete", { securityPolicyId: id }), "organization policies");
    await own.set({ updateMask: "securityPolicyId" });
    expectInUse(await call("Delete", { securityPolicyId: id }), "environment");
    expectUnassignable(
      await call("Update", { securityPolicyId: id, spec: { ports: {} } }),
      id,
      "spec.ports",
      "must be unset: only executables can be controlled",
    );
    ok(await own.call("EnvironmentService/DeleteEnvironment", { environmentId: environment.id }));
    expect((await call("Delete", { securityPolicyId: id })).status).toBe(200);
  });

  test("and creating an environment with it at the same time never leave one that holds nothing", async () => {
    for (let round = 0; round < 10; round++) {
      const id = await madeId(GOOD);
      const [created, deleted] = await Promise.all([
        createEnvironment(id),
        call("Delete", { securityPolicyId: id }),
      ]);
      const outcome = [created.status, deleted.status];
      expect([
        [200, 400],
        [404, 200],
      ]).toContainEqual(outcome);
    }
  });
});
