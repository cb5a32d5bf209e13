import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { type Answer, post, repository } from "../harness/call.ts";
import { auditTrailOf, expectRefused, ok } from "../harness/host-token.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { storedTexts } from "../harness/stored-texts.ts";
import { until } from "../harness/until.ts";

const PROXY = { targetHosts: ["api.example.org", "api.example.net:8443"], header: "Authorization" };
const VALUE = "Rumpelstiltskin-9f3a7c5be1";

let server: HostedServer;
let organizationId: string;
let administrator: string;
let member: TestMember;
let serviceAccountId: string;
let serviceToken: string;
beforeAll(async () => {
  server = await startHostedServer({ args: ["--log-level", "debug"] });
  const identity = await ok(call("IdentityService/GetAuthenticatedIdentity", {}));
  organizationId = identity.organizationId;
  administrator = identity.subject.id;
  member = await addMember(server, { organizationId, email: "member@localhost" });
  serviceAccountId = await newServiceAccount();
  const issued = await ok(call("ServiceAccountService/CreateServiceAccountToken", { serviceAccountId }));
  serviceToken = issued.token;
});
afterAll(stopAll);

const call = (operation: string, body: unknown, token = server.token) => post(server, operation, body, token);
let made = 0;
const create = (body: object, token?: string) => {
  made += 1;
  const request = { name: `SECRET_${made}`, value: VALUE, environmentVariable: true };
  return call("SecretService/CreateSecret", { ...request, scope: { organizationId }, ...body }, token);
};
const created = async (body: object, token?: string) => (await ok(create(body, token))).secret;
const update = (secretId: string, value: string, token?: string) =>
  call("SecretService/UpdateSecretValue", { secretId, value }, token);
const remove = (secretId: string, token?: string) => call("SecretService/DeleteSecret", { secretId }, token);
const list = async (filter: object, token?: string): Promise<string[]> => {
  const request = { pagination: { pageSize: 100 }, filter };
  const { secrets } = await ok(call("SecretService/ListSecrets", request, token));
  return secrets.map(({ id }: { id: string }) => id);
};
const newProject = async (token?: string): Promise<string> => {
  const initializer = repository("https://git.example.org/team/ship.git");
  return (await ok(call("ProjectService/CreateProject", { name: "ship", initializer }, token))).project.id;
};
const newServiceAccount = async (): Promise<string> => {
  const request = { name: "Nightly", validUntil: "2999-12-31T00:00:00Z" };
  return (await ok(call("ServiceAccountService/CreateServiceAccount", request))).serviceAccount.id;
};

describe("a secret", () => {
  test("is answered without its value, with its mount and its scope", async () => {
    const answer = await create({
      name: "NPM_TOKEN",
      scope: { organizationId: organizationId.toUpperCase() },
    });
    expect(answer.body.secret).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: "NPM_TOKEN",
      projectId: "",
      createdAt: expect.any(String),
      updatedAt: answer.body.secret.createdAt,
      creator: { id: administrator, principal: "PRINCIPAL_USER" },
      environmentVariable: true,
      scope: { organizationId },
      source: { verbatim: true },
    });
    expect(await list({ scope: { organizationId } })).toContain(answer.body.secret.id);
  });

  test("is answered with its credential proxy, which needs no mount and refuses values that fit no header", async () => {
    const secret = await created({ environmentVariable: undefined, credentialProxy: PROXY });
    expect(secret).toMatchObject({ credentialProxy: PROXY });
    expect(secret).not.toHaveProperty("environmentVariable");
    expect(await created({ credentialProxy: PROXY })).toMatchObject({ environmentVariable: true });
    expectRefused(await update(secret.id, "a\nb and more"), 400, "VALUE_UNUSABLE", /control characters/);
    await ok(update(secret.id, "another"));
  });

  test("belongs to the project of the deprecated field", async () => {
    const projectId = await newProject();
    const secret = await created({ scope: undefined, projectId });
    expect([secret.projectId, secret.scope]).toEqual([projectId, { projectId }]);
    expect(await list({ projectIds: [projectId] })).toEqual([secret.id]);
    expect(await list({ scope: { projectId } })).toEqual([secret.id]);
    expect(await list({ projectIds: [projectId], scope: { organizationId } })).toEqual([]);
  });

  test("is refused where it cannot be mounted, or what it names is wrong", async () => {
    const file = { environmentVariable: undefined };
    const wrong: [object, number, string, RegExp][] = [
      [{ scope: undefined }, 400, "VALUE_UNUSABLE", /needs a scope/],
      [{ scope: {} }, 400, "VALUE_UNUSABLE", /needs a scope/],
      [{ environmentVariable: undefined }, 400, "VALUE_UNUSABLE", /needs a mount/],
      [{ environmentVariable: false }, 400, "VALUE_UNUSABLE", /must be true/],
      [{ ...file, apiOnly: false }, 400, "VALUE_UNUSABLE", /must be true/],
      [{ source: { verbatim: false } }, 400, "VALUE_UNUSABLE", /must be true/],
      [{ name: "9LIVES" }, 400, "VALUE_UNUSABLE", /must not begin with a digit/],
      [{ name: "PATH" }, 400, "VALUE_UNUSABLE", /sets .* itself/],
      [{ name: "CHARTROOM_URL" }, 400, "VALUE_UNUSABLE", /sets .* itself/],
      [{ value: "a\0b" }, 400, "VALUE_UNUSABLE", /U\+0000/],
      [{ ...file, filePath: "/a/../b" }, 400, "VALUE_UNUSABLE", /segments/],
      [{ ...file, filePath: "/a/./b" }, 400, "VALUE_UNUSABLE", /segments/],
      [{ ...file, filePath: "/a//b" }, 400, "VALUE_UNUSABLE", /segments/],
      [{ ...file, filePath: "/a/" }, 400, "VALUE_UNUSABLE", /segments/],
      [{ ...file, filePath: "/a\nb" }, 400, "VALUE_UNUSABLE", /control characters/],
      [{ ...file, filePath: "a/b" }, 400, "CONSTRAINT_VIOLATED", /absolute path/],
      [{ credentialProxy: { header: "authorization" } }, 400, "VALUE_UNUSABLE", /needs a target host/],
      [
        { credentialProxy: { ...PROXY, targetHosts: ["a.example", "*.b"] } },
        400,
        "VALUE_UNUSABLE",
        /"\*\.b"/,
      ],
      [{ credentialProxy: { ...PROXY, header: "Host" } }, 400, "VALUE_UNUSABLE", /header for credentials/],
      [{ credentialProxy: PROXY, value: "abc" }, 400, "VALUE_UNUSABLE", /of 4 characters of ASCII/],
      [{ credentialProxy: PROXY, value: "line end\n" }, 400, "VALUE_UNUSABLE", /such as a line end/],
      [{ ...file, containerRegistryBasicAuthHost: "r.example.org" }, 501, "NOT_BUILT", /not built yet/],
      [{ scope: { projectId: v7() } }, 404, "NOT_FOUND", /^project not found$/],
      [{ scope: { userId: v7() } }, 404, "NOT_FOUND", /^user not found$/],
      [{ scope: { serviceAccountId: v7() } }, 404, "NOT_FOUND", /^service account not found$/],
      [{ scope: { organizationId: v7() } }, 404, "NOT_FOUND", /^organization not found$/],
      [{ projectId: v7() }, 404, "NOT_FOUND", /^project not found$/],
      [{ projectId: await newProject() }, 400, "VALUE_UNUSABLE", /different owners/],
    ];
    for (const [body, status, reason, message] of wrong)
      expectRefused(await create(body), status, reason, message);
  });

  test("has a name and a path that are unique in its scope", async () => {
    const [one, other] = [{ projectId: await newProject() }, { projectId: await newProject() }];
    await created({ name: "SAME", scope: one });
    await created({ name: "SAME", scope: other });
    const file = { environmentVariable: undefined, filePath: "/run/secrets/key" };
    expectRefused(await create({ name: "SAME", scope: one, ...file }), 409, "VALUE_TAKEN", /this name/);
    await created({ name: "1ST", scope: one, ...file });
    await created({ name: "1ST", scope: other, ...file });
    expectRefused(await create({ scope: one, ...file }), 409, "VALUE_TAKEN", /this filePath/);
  });

  test("is one of 100 of its scope", async () => {
    const scope = { projectId: await newProject() };
    for (let at = 0; at < 100; at++) await created({ scope });
    expectRefused(await create({ scope }), 400, "LIMIT_REACHED", /has 100 secrets/);
    const [first = ""] = await list({ scope });
    await ok(update(first, "another"));
    await ok(remove(first));
    await created({ scope });
  });

  test("has values of 256 KiB together with the others of its scope", async () => {
    const scope = { projectId: await newProject() };
    // 25 of 10,240 bytes are 256,000; 6,144 are left.
    for (let at = 0; at < 25; at++) await created({ scope, value: "x".repeat(10_240) });
    expectRefused(await create({ scope, value: "x".repeat(6_145) }), 400, "LIMIT_REACHED", /262145 bytes/);
    const last = await created({ scope, value: "x".repeat(6_144) });
    expectRefused(await update(last.id, "x".repeat(6_145)), 400, "LIMIT_REACHED", /262145 bytes/);
    expectRefused(await update(last.id, `${"x".repeat(6_143)}ü`), 400, "LIMIT_REACHED", /262145 bytes/);
    await ok(update(last.id, "x".repeat(6_143)));
  });

  test("of a project that is pending deletion is refused, and a secret goes with its project", async () => {
    const projectId = await newProject();
    const { id } = await created({ scope: { projectId } });
    await ok(call("ProjectService/DeleteProject", { projectId }));
    const answer = await create({ scope: { projectId } });
    expect([400, 404]).toContain(answer.status);
    const kindsOf = async () => (await auditTrailOf(server, id)).kinds;
    await until(kindsOf, (kinds) => kinds.includes("deleted"));
    expectRefused(await remove(id), 404, "NOT_FOUND");
  });
});

describe("who may do what", () => {
  const denied = (answer: Answer) => expectRefused(answer, 403, "PERMISSION_DENIED");

  test("of the organization: administrators change, everybody sees", async () => {
    const { id } = await created({});
    for (const token of [member.token, serviceToken]) {
      expect(await list({ scope: { organizationId } }, token)).toContain(id);
      denied(await create({}, token));
      denied(await update(id, "x", token));
      denied(await remove(id, token));
    }
    await ok(remove(id));
    expectRefused(await remove(id), 404, "NOT_FOUND");
  });

  test("of a project: administrators and who made it change, everybody sees", async () => {
    const projectId = await newProject(member.token);
    const { id } = await created({ scope: { projectId } }, member.token);
    await ok(update(id, "x", member.token));
    await ok(update(id, "y"));
    expect(await list({ scope: { projectId } }, serviceToken)).toContain(id);
    denied(await create({ scope: { projectId } }, serviceToken));
    denied(await remove(id, serviceToken));
    const foreign = await newProject();
    denied(await create({ scope: { projectId: foreign } }, member.token));
    await ok(remove(id, member.token));
  });

  test("of a user: that user alone, an administrator neither", async () => {
    const scope = { userId: member.userId };
    const { id } = await created({ scope }, member.token);
    expect(await list({ scope }, member.token)).toEqual([id]);
    for (const token of [server.token, serviceToken]) {
      denied(await create({ scope }, token));
      expect(await list({ scope }, token)).toEqual([]);
      expectRefused(await update(id, "x", token), 404, "NOT_FOUND");
      expectRefused(await remove(id, token), 404, "NOT_FOUND");
    }
    await ok(update(id, "x", member.token));
    await ok(remove(id, member.token));
  });

  test("of a service account: administrators change, it sees its own", async () => {
    const scope = { serviceAccountId };
    const { id } = await created({ scope });
    expect([await list({ scope }, serviceToken), await list({ scope }, member.token)]).toEqual([[id], []]);
    denied(await create({ scope }, member.token));
    denied(await create({ scope }, serviceToken));
    denied(await update(id, "x", serviceToken));
    expectRefused(await update(id, "x", member.token), 404, "NOT_FOUND");
    await ok(update(id, "x"));
    await ok(remove(id));
  });

  test("secrets go with their user and their service account, and do not come back", async () => {
    const leaver = await addMember(server, { organizationId, email: "leaver@localhost" });
    const machine = await newServiceAccount();
    const secrets = [
      await created({ scope: { userId: leaver.userId } }, leaver.token),
      await created({ scope: { serviceAccountId: machine } }),
    ];
    await ok(call("OrganizationService/RemoveMember", { organizationId, userId: leaver.userId }));
    await ok(call("ServiceAccountService/DeleteServiceAccount", { serviceAccountId: machine }));
    for (const { id } of secrets)
      expect((await auditTrailOf(server, id)).kinds).toEqual(["created", "deleted"]);
    expect(await list({ scope: { serviceAccountId: machine } })).toEqual([]);
  });
});

test("pages go on where they ended", async () => {
  const scope = { projectId: await newProject() };
  const ids = [(await created({ scope })).id, (await created({ scope })).id, (await created({ scope })).id];
  const found: string[] = [];
  let token = "";
  do {
    const page = await ok(
      call("SecretService/ListSecrets", { pagination: { pageSize: 2, token }, filter: { scope } }),
    );
    found.push(...page.secrets.map(({ id }: { id: string }) => id));
    token = page.pagination.nextToken;
  } while (token !== "");
  expect(found).toEqual(ids);
});

test("the record says what was done, without a value", async () => {
  const { id } = await created({});
  await ok(update(id, `${VALUE}2`));
  await ok(remove(id));
  const { rows, kinds } = await auditTrailOf(server, id);
  expect(kinds).toEqual(["created", "updated", "deleted"]);
  expect(rows.map(({ operation, subject_type }) => [operation, subject_type])).toEqual(
    ["CreateSecret", "UpdateSecretValue", "DeleteSecret"].map((name) => [
      `service.v1.SecretService/${name}`,
      "organization_secret",
    ]),
  );
  expect(rows[1]?.diff.value).toEqual(["(secret)", "(new secret)"]);
});

test("a value is in no file, table, log, or answer, neither as it is nor in base64", async () => {
  const answers = [
    await create({}),
    await create({ value: { nested: VALUE } }),
    await create({ name: VALUE }),
    await create({ value: VALUE.repeat(500) }),
    await create({ scope: { projectId: v7() } }),
    await update(v7(), VALUE),
    await call("SecretService/ListSecrets", { pagination: { pageSize: 100 } }),
    await call("EventService/ListAuditLogs", { pagination: { pageSize: 100 } }),
  ];
  // What base64 makes of the value at each of three places, without the ends that depend on what is around it.
  const forms = [0, 1, 2].map((at) =>
    Buffer.from("x".repeat(at) + VALUE)
      .toString("base64")
      .slice(at === 0 ? 0 : 4, 32),
  );
  const tellsIt = (text: string) => [VALUE, ...forms].some((form) => text.includes(form));
  expect(tellsIt(`a${Buffer.from(`x${VALUE}y`).toString("base64")}`)).toBe(true);
  expect(answers.map(({ body }) => tellsIt(JSON.stringify(body)))).toEqual(answers.map(() => false));
  for (const [place, text] of await storedTexts(server.dataDir))
    expect([place, tellsIt(text)]).toEqual([place, false]);
  expect(tellsIt(server.logText())).toBe(false);
});
