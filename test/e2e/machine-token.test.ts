import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { exportSPKI, importJWK, SignJWT, UnsecuredJWT } from "jose";
import { removeOldMachineTokenUses } from "../../src/jobs/token-expiry.ts";
import { post, reasonOf } from "../harness/call.ts";
import { blockOf, fencedBlocks } from "../harness/fenced-blocks.ts";
import { addMember, withServerData } from "../harness/member.ts";
import { endNodes } from "../harness/node-process.ts";
import { addOrganization } from "../harness/organization.ts";
import { CLIENT_ID, startProvider, type TestProvider } from "../harness/provider.ts";
import { withRawData } from "../harness/raw-data.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { startTokenIssuer, type TokenIssuer } from "../harness/token-issuer.ts";

const WHOAMI = "IdentityService/GetAuthenticatedIdentity";
const GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT = "urn:ietf:params:oauth:token-type:jwt";

let server: HostedServer;
let organizationId: string;
let ci: TokenIssuer;
let other: TokenIssuer;
let closed: TokenIssuer;
/** A provider as others run it. */
let real: TestProvider;
beforeAll(async () => {
  [ci, other, closed, real] = await Promise.all([
    startTokenIssuer(),
    startTokenIssuer(),
    startTokenIssuer(),
    startProvider({ serverPort: 9, id: "real" }),
  ]);
  const file = join(temporaryFolder(), "issuers.json");
  const issuers = [
    { issuer: ci.issuer, audiences: ["chartroom", "chartroom-two"], privateAddresses: true },
    {
      issuer: other.issuer,
      audiences: ["chartroom"],
      privateAddresses: true,
      outliveToken: true,
      maxSeconds: 1_200,
    },
    { issuer: closed.issuer, audiences: ["chartroom"] },
    { issuer: real.issuer, audiences: ["chartroom"], privateAddresses: true },
  ];
  writeFileSync(file, JSON.stringify({ issuers }));
  server = await startHostedServer({ args: ["--machine-issuers", file] });
  ({ organizationId } = (await post(server, WHOAMI)).body);
});
afterAll(async () => {
  await Promise.all([stopAll(), endNodes()]);
  await Promise.all([ci, other, closed].map((each) => each?.close()));
});

async function call(operation: string, body: object, as = server.token) {
  const answer = await post(server, `ServiceAccountService/${operation}`, body, as);
  if (answer.status !== 200) throw new Error(`${operation}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

async function serviceAccount(validUntil = "2999-12-31T00:00:00Z", as = server.token): Promise<string> {
  return (await call("CreateServiceAccount", { name: "Robot", validUntil }, as)).serviceAccount.id;
}

const MAIN = [{ claim: "sub", value: "repo:acme/app:ref:refs/heads/main" }];

/** A trust of a service account, which is new unless it is named. */
async function trusted(change: object = {}, as = server.token) {
  const request = { issuer: ci.issuer, audience: "chartroom", conditions: MAIN, ...change };
  const { serviceAccountTrust } = await call(
    "CreateServiceAccountTrust",
    { serviceAccountId: await serviceAccount(undefined, as), ...request },
    as,
  );
  return {
    id: serviceAccountTrust.id as string,
    serviceAccountId: serviceAccountTrust.serviceAccountId as string,
  };
}

/** Sends what a machine sends. */
async function exchange(
  subject_token: string,
  service_account_id: string,
  change: Readonly<Record<string, string>> = {},
) {
  const form = { grant_type: GRANT, subject_token_type: JWT, subject_token, service_account_id, ...change };
  const res = await fetch(`${server.url}/sign-in/machine/token`, {
    method: "POST",
    body: new URLSearchParams(form),
  });
  return { status: res.status, header: res.headers, body: JSON.parse(await res.text()) };
}

const tokenFor = async (serviceAccountId: string, issuer = ci) =>
  (await exchange(await issuer.sign(), serviceAccountId)).body.access_token as string;
const statusOf = async (token: string) => (await post(server, WHOAMI, {}, token)).status;

const NO_TRUST = "no trust of the service account fits the issuer, the audience and the claims of the token";

describe("a machine's token", () => {
  test("is exchanged for a short one of the service account, which the record names", async () => {
    const { id, serviceAccountId } = await trusted();
    const jwt = await ci.sign();
    const { status, header, body } = await exchange(jwt, serviceAccountId.toUpperCase());
    expect([status, header.get("cache-control")]).toEqual([200, "no-store"]);
    expect(body).toEqual({
      access_token: expect.stringMatching(/^cr_mac_\w{36}$/),
      issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
      token_type: "Bearer",
      expires_in: expect.any(Number),
    });
    // The issuer's holds 600 seconds, and ours 30 longer: clocks may differ by as much.
    expect(body.expires_in).toBeGreaterThan(300);
    expect(body.expires_in).toBeLessThanOrEqual(630);
    const identity = (await post(server, WHOAMI, {}, body.access_token)).body;
    expect(identity).toMatchObject({
      organizationId,
      subject: { id: serviceAccountId, principal: "PRINCIPAL_SERVICE_ACCOUNT" },
    });
    const audit = await post(server, "EventService/ListAuditLogs", {
      filter: { actions: ["sign-in/machine"] },
    });
    const entry = audit.body.entries.find(({ actorId }: { actorId: string }) => actorId === serviceAccountId);
    expect(JSON.stringify(entry)).toContain(id);
    expect(JSON.stringify(entry)).toContain("repo:acme/app:ref:refs/heads/main");
    const rows = await withRawData(server.dataDir, (data) => data.rows("select * from token"));
    for (const secret of [jwt, jwt.split(".")[2] ?? "", body.access_token]) {
      expect(server.logText() + JSON.stringify(rows) + JSON.stringify(audit.body)).not.toContain(secret);
    }
  });

  test("of a provider that is a process of its own is exchanged, once, and none for another audience", async () => {
    const conditions = [
      { claim: "sub", value: CLIENT_ID },
      { claim: "client_id", value: CLIENT_ID },
    ];
    const { serviceAccountId } = await trusted({ issuer: real.issuer, conditions });
    const jwt = await real.machineToken("chartroom");
    const { status, body } = await exchange(jwt, serviceAccountId);
    expect([status, body]).toEqual([200, expect.objectContaining({ token_type: "Bearer" })]);
    const identity = (await post(server, WHOAMI, {}, body.access_token)).body;
    expect(identity.subject).toEqual({ id: serviceAccountId, principal: "PRINCIPAL_SERVICE_ACCOUNT" });
    expect((await exchange(jwt, serviceAccountId)).body.error_description).toContain("exchanged before");
    const elsewhere = await exchange(await real.machineToken("somebody"), serviceAccountId);
    expect([elsewhere.status, elsewhere.body.error_description]).toEqual([
      400,
      expect.stringContaining("claim aud"),
    ]);
  });

  test("holds as long as its settings say where it may outlive the issuer's", async () => {
    const { serviceAccountId } = await trusted({ issuer: other.issuer });
    const at = Math.floor(Date.now() / 1000);
    const { body } = await exchange(await other.sign({ exp: at + 900 }), serviceAccountId);
    expect(body.expires_in).toBeGreaterThan(931);
    expect(body.expires_in).toBeLessThanOrEqual(1_200);
  });

  test("ends with the service account", async () => {
    const validUntil = new Date(Date.now() + 300_000).toISOString();
    const { serviceAccountId } = await trusted({ serviceAccountId: await serviceAccount(validUntil) });
    const { body } = await exchange(await ci.sign(), serviceAccountId);
    expect(body.expires_in).toBeLessThanOrEqual(300);
    await withRawData(server.dataDir, (data) =>
      data.rows("update service_account set valid_until = 1 where id = ?", serviceAccountId),
    );
    expect(await statusOf(body.access_token)).toBe(401);
    expect((await exchange(await ci.sign(), serviceAccountId)).body.error_description).toBe(NO_TRUST);
  });

  test("makes no other token, and may do what members may", async () => {
    const { serviceAccountId } = await trusted();
    const token = await tokenFor(serviceAccountId);
    expect((await post(server, "ProjectService/ListProjects", {}, token)).status).toBe(200);
    for (const body of [{}, { serviceAccountId }]) {
      const made = await post(server, "ServiceAccountService/CreateServiceAccountToken", body, token);
      expect([made.status, reasonOf(made)]).toEqual([403, "PERMISSION_DENIED"]);
    }
    const trust = { serviceAccountId, issuer: ci.issuer, audience: "chartroom", conditions: MAIN };
    const trusts = await post(server, "ServiceAccountService/CreateServiceAccountTrust", trust, token);
    expect([trusts.status, reasonOf(trusts)]).toEqual([403, "PERMISSION_DENIED"]);
  });

  test("is exchanged once, of many at the same time too, where it has an id", async () => {
    const { serviceAccountId } = await trusted();
    const jwt = await ci.sign();
    const answers = await Promise.all([1, 2, 3].map(() => exchange(jwt, serviceAccountId)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400, 400]);
    const replay = await exchange(jwt, (await trusted()).serviceAccountId);
    expect(replay.body).toEqual({
      error: "invalid_grant",
      error_description: "the token was exchanged before: each is of use once",
    });
    // The same id of another issuer is another token.
    const elsewhere = await trusted({ issuer: other.issuer });
    const jti = `shared ${serviceAccountId}`;
    expect((await exchange(await ci.sign({ jti }), serviceAccountId)).status).toBe(200);
    expect((await exchange(await other.sign({ jti }), elsewhere.serviceAccountId)).status).toBe(200);
    const uses = () =>
      withRawData(
        server.dataDir,
        async (data) => (await data.rows("select 1 from machine_token_use")).length,
      );
    expect(await uses()).toBeGreaterThan(0);
    await withServerData(server, (store) => removeOldMachineTokenUses(store, Date.now()));
    expect((await exchange(await ci.sign({ jti }), serviceAccountId)).status).toBe(400);
    await withServerData(server, (store) => removeOldMachineTokenUses(store, Date.now() + 2 * 3_600_000));
    expect(await uses()).toBe(0);
    const without = await ci.sign({ jti: undefined });
    for (let each = 0; each < 2; each++) expect((await exchange(without, serviceAccountId)).status).toBe(200);
  });

  test.each<[string, () => Promise<unknown> | unknown, string]>([
    [
      "alg none",
      () =>
        new UnsecuredJWT({ iss: ci.issuer, aud: "chartroom", sub: MAIN[0]?.value ?? "" })
          .setExpirationTime("5m")
          .setIssuedAt()
          .encode(),
      "signed in a way",
    ],
    ["the public key as a secret (alg confusion)", () => hmacSigned(), "signed in a way"],
    ["another key under the same name", () => other.sign({ iss: ci.issuer }, { kid: "first" }), "signature"],
    ["a key that is not there", () => ci.sign({}, { kid: "gone" }), "a key that its issuer does not have"],
    ["another issuer's name", () => ci.sign({ iss: other.issuer }), "signature"],
    [
      "an issuer that is not in the settings",
      () => ci.sign({ iss: "https://ci.example.org" }),
      "name no issuer",
    ],
    ["the issuer with a slash", () => ci.sign({ iss: `${ci.issuer}/` }), "name no issuer"],
    ["no issuer", () => ci.sign({ iss: undefined }), "name no issuer"],
    ["another audience", () => ci.sign({ aud: "somebody" }), "claim aud"],
    ["no audience", () => ci.sign({ aud: undefined }), "claim aud"],
    [
      "an audience of the settings that is not the trust's",
      () => ci.sign({ aud: "chartroom-two" }),
      NO_TRUST,
    ],
    ["an end that has passed", () => ci.sign({ exp: seconds(-60) }), "has ended"],
    ["no end", () => ci.sign({ exp: undefined }), "claim exp"],
    ["no beginning", () => ci.sign({ iat: undefined }), "claim iat"],
    ["a time to come", () => ci.sign({ nbf: seconds(600) }), "claim nbf"],
    ["a beginning to come", () => ci.sign({ iat: seconds(600) }), "issued in the future"],
    ["another claim", () => ci.sign({ sub: "repo:acme/app:ref:refs/heads/next" }), NO_TRUST],
    ["more behind the claim", () => ci.sign({ sub: "repo:acme/app:ref:refs/heads/main2" }), NO_TRUST],
    ["the claim as a list", () => ci.sign({ sub: [MAIN[0]?.value] }), NO_TRUST],
    ["no such claim", () => ci.sign({ sub: undefined }), NO_TRUST],
    ["an id that is no text", () => ci.sign({ jti: 7 }), "jti"],
    ["a changed body", async () => changed(await ci.sign()), "signature"],
    ["nothing", () => "", "no token of an issuer"],
    ["one of ours", () => server.token, "no token of an issuer"],
    ["five parts", () => "a.b.c.d.e", "no token of an issuer"],
  ])("with %s is not exchanged", async (_, make, reason) => {
    const { serviceAccountId } = await trusted();
    const { status, body } = await exchange(String(await make()), serviceAccountId);
    expect([status, body.error]).toEqual([400, "invalid_grant"]);
    expect(body.error_description).toContain(reason);
    expect((await exchange(await ci.sign(), serviceAccountId)).status).toBe(200);
  });

  test("is not exchanged where its issuer is at an address that is not public, or does not answer", async () => {
    const { serviceAccountId } = await trusted({ issuer: closed.issuer });
    const { status, body } = await exchange(await closed.sign(), serviceAccountId);
    expect([status, body.error]).toEqual([503, "temporarily_unavailable"]);
    expect(closed.asked).toEqual([]);
    expect(server.logText()).toContain("is at an address that is not public");
  });

  test("is sent in the form of RFC 8693", async () => {
    const { serviceAccountId } = await trusted();
    const errorOf = async (change: Readonly<Record<string, string>>) =>
      (await exchange(await ci.sign(), serviceAccountId, change)).body.error;
    expect(await errorOf({ grant_type: "password" })).toBe("unsupported_grant_type");
    expect(await errorOf({ subject_token_type: "saml2" })).toBe("invalid_request");
    expect(await errorOf({ service_account_id: "robot" })).toBe("invalid_request");
    expect(await errorOf({ service_account_id: "" })).toBe("invalid_request");
    expect(await errorOf({ subject_token_type: "urn:ietf:params:oauth:token-type:id_token" })).toBe(
      undefined,
    );
    const json = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
    expect((await fetch(`${server.url}/sign-in/machine/token`, json)).status).toBe(400);
    expect((await fetch(`${server.url}/sign-in/machine/token`)).status).toBe(405);
    const large = await exchange("x".repeat(17_500), serviceAccountId);
    expect([large.status, large.body]).toEqual([
      400,
      { error: "invalid_request", error_description: expect.stringContaining("17408 bytes") },
    ]);
  });
});

const seconds = (fromNow: number) => Math.floor(Date.now() / 1000) + fromNow;

/** A token whose HMAC has the public key as its secret, as a verifier that trusts `alg` would take it. */
async function hmacSigned(): Promise<string> {
  const key = await importJWK({ ...ci.publicKey(), ext: true }, "RS256");
  const secret = new TextEncoder().encode(await exportSPKI(key as CryptoKey));
  const claims = { iss: ci.issuer, aud: "chartroom", sub: MAIN[0]?.value ?? "" };
  const token = new SignJWT(claims).setIssuedAt().setExpirationTime("5m");
  return token.setProtectedHeader({ alg: "HS256", kid: "first" }).sign(secret);
}

/** Another body under the same signature. */
function changed(token: string): string {
  const [head, body = "", signature] = token.split(".");
  const claims = JSON.parse(Buffer.from(body, "base64url").toString());
  const other = Buffer.from(JSON.stringify({ ...claims, jti: "another" })).toString("base64url");
  return [head, other, signature].join(".");
}

test("the page's example runs", async () => {
  const blocks = fencedBlocks("docs/sign-in.md");
  const env = { ...process.env, TOKEN: server.token, CI_TOKEN: await ci.sign() };
  const script = [0, 1]
    .map((position) => blockOf(blocks, "Tokens of machines", "sh", position))
    .join("\n")
    .replaceAll("https://chartroom.example.org", server.url)
    .replaceAll("https://ci.example.org", ci.issuer);
  const { stdout } = await promisify(execFile)("bash", ["-euc", script], { env });
  expect(stdout).toMatch(/"serviceAccountTrust":\{.*\nservice account [-0-9a-f]{36}\n.*"pagination"/s);
});

describe("a trust", () => {
  test("takes the prefix of a claim, and all of several", async () => {
    const conditions = [
      { claim: "repository", value: "acme/*" },
      { claim: "ref", value: "refs/heads/main" },
    ];
    const { serviceAccountId } = await trusted({ conditions });
    const given = async (claims: object) => (await exchange(await ci.sign(claims), serviceAccountId)).status;
    expect(await given({})).toBe(200);
    expect(await given({ repository: "acme/other" })).toBe(200);
    expect(await given({ repository: "acme-evil/app" })).toBe(400);
    expect(await given({ ref: "refs/heads/main2" })).toBe(400);
    expect(await given({ ref: undefined })).toBe(400);
  });

  test("of another organization's service account is no way into this one", async () => {
    const elsewhere = await addOrganization(server, "machines-elsewhere");
    const theirs = await trusted({}, elsewhere.token);
    const jwt = await ci.sign();
    // The same answer as for one that is not there.
    for (const id of ["01890a5d-ac96-774b-bcce-b302099a8057", await serviceAccount()]) {
      expect((await exchange(jwt, id)).body.error_description).toBe(NO_TRUST);
    }
    const given = (await exchange(jwt, theirs.serviceAccountId)).body.access_token;
    expect((await post(server, WHOAMI, {}, given)).body.organizationId).toBe(elsewhere.organizationId);
    for (const operation of [
      "CreateServiceAccountTrust",
      "DeleteServiceAccountTrust",
      "ListServiceAccountTrusts",
    ]) {
      const body = { serviceAccountTrustId: theirs.id, serviceAccountId: theirs.serviceAccountId };
      const asked = { issuer: ci.issuer, audience: "chartroom", conditions: MAIN };
      const request = operation.startsWith("Create")
        ? { ...asked, serviceAccountId: theirs.serviceAccountId }
        : body;
      const { serviceAccountTrustId: _, ...list } = body;
      const { serviceAccountId: __, ...named } = body;
      const sent = operation.startsWith("List") ? list : operation.startsWith("Delete") ? named : request;
      expect((await post(server, `ServiceAccountService/${operation}`, sent)).status).toBe(404);
    }
  });

  test("that is deleted ends what it gave, and nothing else", async () => {
    const first = await trusted();
    const second = await trusted({ serviceAccountId: first.serviceAccountId, issuer: other.issuer });
    const [one, two] = [
      await tokenFor(first.serviceAccountId),
      await tokenFor(first.serviceAccountId, other),
    ];
    const { serviceAccountTrusts } = await call("ListServiceAccountTrusts", {
      serviceAccountId: first.serviceAccountId,
    });
    expect(serviceAccountTrusts.map(({ id }: { id: string }) => id)).toEqual([first.id, second.id]);
    await call("DeleteServiceAccountTrust", { serviceAccountTrustId: first.id });
    expect([await statusOf(one), await statusOf(two)]).toEqual([401, 200]);
    expect((await exchange(await ci.sign(), first.serviceAccountId)).status).toBe(400);
    await call("DeleteServiceAccount", { serviceAccountId: first.serviceAccountId });
    expect(await statusOf(two)).toBe(401);
    expect((await exchange(await other.sign(), first.serviceAccountId)).status).toBe(400);
  });

  test("gives nothing while its creator is suspended or blocked, and what it gave has ended", async () => {
    const maker = await addMember(server, {
      organizationId,
      email: "maker@example.org",
      administrator: true,
    });
    const { serviceAccountId } = await trusted({}, maker.token);
    const before = await tokenFor(serviceAccountId);
    const suspend = (suspended: boolean) =>
      post(server, "UserService/SetSuspended", { userId: maker.userId, suspended });
    await suspend(true);
    expect(await statusOf(before)).toBe(401);
    expect((await exchange(await ci.sign(), serviceAccountId)).body.error_description).toBe(NO_TRUST);
    await suspend(false);
    expect(await statusOf(before)).toBe(401);
    const again = await tokenFor(serviceAccountId);
    expect(await statusOf(again)).toBe(200);
    const blocked = await post(server, "AccountService/BlockAccount", {
      accountId: maker.accountId,
      reason: "left",
    });
    expect(blocked.status).toBe(200);
    expect(await statusOf(again)).toBe(401);
    expect((await exchange(await ci.sign(), serviceAccountId)).status).toBe(400);
  });

  test("is one of 25 of a service account, and names what the settings name", async () => {
    const serviceAccountId = await serviceAccount();
    for (let each = 1; each <= 25; each++) await trusted({ serviceAccountId });
    const refusal = async (change: object) => {
      const body = {
        serviceAccountId,
        issuer: ci.issuer,
        audience: "chartroom",
        conditions: MAIN,
        ...change,
      };
      const answer = await post(server, "ServiceAccountService/CreateServiceAccountTrust", body);
      return [answer.status, reasonOf(answer)];
    };
    expect(await refusal({})).toEqual([400, "PHASE_UNSUITABLE"]);
    const free = { serviceAccountId: await serviceAccount() };
    expect(await refusal({ ...free, issuer: "https://ci.example.org" })).toEqual([400, "VALUE_UNUSABLE"]);
    expect(await refusal({ ...free, audience: "somebody" })).toEqual([400, "VALUE_UNUSABLE"]);
    expect(await refusal({ ...free, conditions: [{ claim: "sub", value: "repo:*:main" }] })).toEqual([
      400,
      "VALUE_UNUSABLE",
    ]);
    expect((await refusal({ ...free, conditions: [] }))[0]).toBe(400);
  });

  test("gives 1,000 tokens that hold at the same time", async () => {
    const { serviceAccountId } = await trusted();
    await tokenFor(serviceAccountId);
    await withRawData(server.dataDir, async (data) => {
      const [row] = await data.rows<Record<string, unknown>>(
        "select * from token where subject_id = ?",
        serviceAccountId,
      );
      const columns = Object.keys(row ?? {});
      const marks = columns.map(() => "?").join(", ");
      for (let each = 1; each < 999; each++) {
        const copy: Record<string, unknown> = {
          ...row,
          id: `copy ${serviceAccountId} ${each}`,
          hash: Buffer.from(`copy ${each}`),
        };
        await data.rows(
          `insert into token (${columns.join(", ")}) values (${marks})`,
          ...columns.map((name) => copy[name]),
        );
      }
    });
    expect((await exchange(await ci.sign(), serviceAccountId)).status).toBe(200);
    const { status, body } = await exchange(await ci.sign(), serviceAccountId);
    expect([status, body.error]).toEqual([503, "temporarily_unavailable"]);
    await withRawData(server.dataDir, (data) =>
      data.rows("update token set expires_at = 1 where id = ?", `copy ${serviceAccountId} 1`),
    );
    expect((await exchange(await ci.sign(), serviceAccountId)).status).toBe(200);
  });
});
