import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post, reasonOf } from "../harness/call.ts";
import { freePort } from "../harness/free-port.ts";
import { addMember } from "../harness/member.ts";
import { endNodes } from "../harness/node-process.ts";
import { addOrganization } from "../harness/organization.ts";
import { Browser, providersFile, startProvider, type TestProvider } from "../harness/provider.ts";
import { withRawData } from "../harness/raw-data.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { originOf, page, signIn } from "../harness/session.ts";

const WHOAMI = "IdentityService/GetAuthenticatedIdentity";

let server: HostedServer;
let token: string;
let organizationId: string;
let corp: TestProvider;
let other: TestProvider;
let clock: TestProvider;

beforeAll(async () => {
  const serverPort = await freePort();
  // The first start makes the organization that the settings name.
  const first = await startHostedServer();
  ({ token } = first);
  organizationId = (await post(first, WHOAMI)).body.organizationId;
  await first.stop();
  [corp, other, clock] = await Promise.all([
    startProvider({ serverPort, id: "corp" }),
    startProvider({ serverPort, id: "other" }),
    startProvider({ serverPort, id: "clock", ttl: 60 }),
  ]);
  const file = providersFile(
    first.dataDir,
    { id: "corp", name: "Corporate", issuer: corp.issuer, organizationId },
    { id: "clock", name: "Clock", issuer: clock.issuer, organizationId },
    {
      ...{ id: "other", issuer: other.issuer, organizationId, linkByEmail: true, others: "refuse" },
      allowedDomains: ["Example.org"],
      groupsClaim: "teams",
      roles: [
        { claim: "groups", value: "chartroom-admins", role: "administrator" },
        { claim: "groups", value: "staff", role: "member" },
      ],
    },
  );
  server = await startHostedServer({
    dataDir: first.dataDir,
    args: ["--port", String(serverPort), "--sign-in-providers", file],
  });
});
afterAll(async () => {
  await stopAll();
  await endNodes();
});

let people = 0;
/** A person that a provider knows. */
async function person(provider: TestProvider, claims: object = {}) {
  people += 1;
  const id = `person${people}`;
  const email = `${id}@example.org`;
  const said = { email, email_verified: true, name: `Person ${people}`, ...claims };
  await provider.set(id, said);
  return { ...said, id };
}

const home = () => `${originOf(server)}/sign-in`;
const failed = (problem: string) => `${home()}?problem=${problem}`;

/** Who is signed in in a browser. */
async function whoIn(browser: Browser) {
  const headers = { cookie: browser.cookiesOf(server.url), origin: originOf(server) };
  return post(server, WHOAMI, {}, "", headers);
}
const isSignedIn = async (browser: Browser) => (await whoIn(browser)).status === 200;

describe("a provider", () => {
  test("has a button, and signs in a new person with an account of its own", async () => {
    const { id, email, name } = await person(corp);
    const named = await page(server, "person", {});
    expect(named.body.providers).toEqual([
      { id: "corp", name: "Corporate" },
      { id: "clock", name: "Clock" },
      { id: "other", name: "other" },
    ]);
    const browser = new Browser();
    expect(await browser.signIn(server, "corp", id)).toBe(home());
    const me = (await whoIn(browser)).body;
    expect(me.organizationId).toBe(organizationId);
    const { body } = await post(server, "OrganizationService/ListMembers", { organizationId }, token);
    const member = body.members.find((each: { userId: string }) => each.userId === me.subject.id);
    expect(member).toMatchObject({ email, fullName: name, role: "ORGANIZATION_ROLE_MEMBER" });
  });

  test("knows the same person again by its id, also with another address", async () => {
    const { id } = await person(corp);
    const [first, second] = [new Browser(), new Browser()];
    await first.signIn(server, "corp", id);
    await corp.set(id, { email: "else@example.org", email_verified: false, name: "Else" });
    expect(await second.signIn(server, "corp", id)).toBe(home());
    expect((await whoIn(second)).body.subject).toEqual((await whoIn(first)).body.subject);
    // The same id at another issuer is another person.
    await other.set(id, { email: `x-${id}@example.org`, email_verified: true, groups: ["staff"] });
    const third = new Browser();
    expect(await third.signIn(server, "other", id)).toBe(home());
    expect((await whoIn(third)).body.subject).not.toEqual((await whoIn(first)).body.subject);
  });

  test.each([
    ["unverified", { email_verified: false }, "address_unverified"],
    ["without a word of it", { email_verified: undefined }, "address_unverified"],
    ["none", { email: undefined }, "address_unverified"],
  ])("creates no account for an address that is %s", async (_, claims, problem) => {
    const { id } = await person(corp, claims);
    const browser = new Browser();
    expect(await browser.signIn(server, "corp", id)).toBe(failed(problem));
    expect(await isSignedIn(browser)).toBe(false);
  });

  test("that refuses somebody signs nobody in", async () => {
    expect(await new Browser().signIn(server, "corp", "nobody")).toBe(failed("provider_refused"));
  });

  test("brings in nobody where SCIM alone does, and no one back who left", async () => {
    const [known, unknown] = [await person(corp), await person(corp)];
    await new Browser().signIn(server, "corp", known.id);
    const set = (restrictAccountCreationToScim: boolean) =>
      post(
        server,
        "OrganizationService/UpdateOrganizationPolicies",
        { organizationId, restrictAccountCreationToScim },
        token,
      );
    expect((await set(true)).status).toBe(200);
    const browser = new Browser();
    expect(await new Browser().signIn(server, "corp", unknown.id)).toBe(failed("scim_only"));
    expect(await browser.signIn(server, "corp", known.id)).toBe(home());
    await set(false);
    const { id: userId } = (await whoIn(browser)).body.subject;
    await post(server, "OrganizationService/RemoveMember", { organizationId, userId }, token);
    expect(await browser.signIn(server, "corp", known.id)).toBe(failed("not_member"));
  });

  test("signs in nobody who is suspended or blocked", async () => {
    const { id } = await person(corp);
    const browser = new Browser();
    await browser.signIn(server, "corp", id);
    const { id: userId } = (await whoIn(browser)).body.subject;
    await post(server, "UserService/SetSuspended", { userId, suspended: true }, token);
    expect(await browser.signIn(server, "corp", id)).toBe(failed("not_member"));
    await post(server, "UserService/SetSuspended", { userId, suspended: false }, token);
    const [member] = await withRawData(server.dataDir, (data) =>
      data.rows<{ account_id: string }>("select account_id from member where id = ?", userId),
    );
    await post(
      server,
      "AccountService/BlockAccount",
      { accountId: member?.account_id, reason: "left" },
      token,
    );
    expect(await browser.signIn(server, "corp", id)).toBe(failed("blocked"));
    expect(await isSignedIn(browser)).toBe(false);
  });
});

test("a start with providers of an organization that there is not says what to do", async () => {
  const absent = "01890a5d-ac96-774b-bcce-b302099a8057";
  const { dataDir } = server;
  const other = await startHostedServer();
  await other.stop();
  const file = providersFile(dataDir, { id: "corp", issuer: corp.issuer, organizationId: absent });
  const start = startHostedServer({ dataDir: other.dataDir, args: ["--sign-in-providers", file] });
  await expect(start).rejects.toThrow(
    `the provider corp names the organization ${absent}, which there is not; chartroom organization list`,
  );
});

describe("an address that an account has already", () => {
  const staff = { groups: ["staff"] };

  test("is linked where the settings say so, and then belongs to that identity alone", async () => {
    const { id, email } = await person(other, staff);
    const { userId } = await addMember(server, { organizationId, email });
    const browser = new Browser();
    expect(await browser.signIn(server, "other", id)).toBe(home());
    expect((await whoIn(browser)).body.subject.id).toBe(userId);
    const thief = await person(other, { email, ...staff });
    expect(await new Browser().signIn(server, "other", thief.id)).toBe(failed("address_taken"));
  });

  test.each([
    ["has its domain in other letters", "Bob", "eXample.Org", "", true],
    ["has its local part in other letters", "bOB", "example.org", "", false],
    [
      "has other letters than the user name that SCIM brought",
      "bOB",
      "Example.org",
      "id at the provider",
      true,
    ],
  ] as const)("that %s", async (_, local, domain, externalId, isLinked) => {
    const { id } = await person(other, staff);
    await other.set(id, { email: `${local}${id}@${domain}`, email_verified: true, ...staff });
    const { userId } = await addMember(server, { organizationId, email: `Bob${id}@example.org` });
    await withRawData(server.dataDir, (data) =>
      data.run(`update member set external_id = nullif('${externalId}', '') where id = '${userId}'`),
    );
    const browser = new Browser();
    expect(await browser.signIn(server, "other", id)).toBe(home());
    expect((await whoIn(browser)).body.subject.id === userId).toBe(isLinked);
  });

  test("that the SCIM of another organization has set is that organization's word alone", async () => {
    const elsewhere = await addOrganization(server, "provisioned");
    const provision = async (as: string) => {
      const request = { name: "Provider", provisioning: true, validUntil: "2999-12-31T00:00:00Z" };
      const made = await post(server, "ServiceAccountService/CreateServiceAccount", request, as);
      const serviceAccountId = made.body.serviceAccount.id;
      const service = "ServiceAccountService/CreateServiceAccountToken";
      const { token: provisioner } = (await post(server, service, { serviceAccountId }, as)).body;
      return async (method: string, path: string, body: object) => {
        const res = await fetch(`${server.url}/scim/v2/Users${path}`, {
          method,
          headers: { authorization: `Bearer ${provisioner}`, "content-type": "application/scim+json" },
          body: JSON.stringify(body),
        });
        expect(res.ok).toBe(true);
        return (await res.json()) as { id: string };
      };
    };
    const [theirs, ours] = [await provision(elsewhere.token), await provision(token)];
    const renamed = (userName: string) => ({ Operations: [{ op: "replace", value: { userName } }] });
    const [made, moved, own, ownMoved, plain] = await Promise.all(
      [1, 2, 3, 4, 5].map(() => person(other, staff)),
    );
    // Made, or renamed from another address, by the other organization.
    await theirs("POST", "", { userName: made?.email });
    const { userId } = await addMember(server, {
      organizationId: elsewhere.organizationId,
      email: `was-${moved?.email}`,
    });
    await theirs("PATCH", `/${userId}`, renamed(moved?.email ?? ""));
    for (const foreign of [made, moved]) {
      const browser = new Browser();
      expect(await browser.signIn(server, "other", foreign?.id ?? "")).toBe(failed("address_taken"));
      expect(await isSignedIn(browser)).toBe(false);
    }
    // By the organization itself, and by the operator in another one.
    const first = await ours("POST", "", { userName: own?.email });
    const second = await ours("POST", "", { userName: `was-${ownMoved?.email}` });
    await ours("PATCH", `/${second.id}`, renamed(ownMoved?.email ?? ""));
    await addMember(server, { organizationId: elsewhere.organizationId, email: plain?.email ?? "" });
    for (const [linked, id] of [
      [own, first.id],
      [ownMoved, second.id],
      [plain, undefined],
    ] as const) {
      const browser = new Browser();
      expect(await browser.signIn(server, "other", linked?.id ?? "")).toBe(home());
      const { subject } = (await whoIn(browser)).body;
      if (id !== undefined) expect(subject.id).toBe(id);
    }
  });

  test("that one had who was removed brings back nobody, in whichever letter case", async () => {
    const { id } = await person(other, staff);
    await other.set(id, { email: `BOB${id}@Example.org`, email_verified: true, ...staff });
    const { userId } = await addMember(server, { organizationId, email: `bob${id}@example.org` });
    await withRawData(server.dataDir, (data) =>
      data.run(`update member set external_id = 'kept' where id = '${userId}'`),
    );
    await post(server, "OrganizationService/RemoveMember", { organizationId, userId }, token);
    expect(await new Browser().signIn(server, "other", id)).toBe(failed("not_member"));
  });

  test.each([
    ["where linking is not switched on", "corp", false, {}, "address_taken"],
    ["of an administrator", "other", true, {}, "address_taken"],
    ["when it is not verified", "other", false, { email_verified: false }, "address_unverified"],
  ] as const)("is not linked %s", async (_, provider, administrator, claims, problem) => {
    const { id, email } = await person(provider === "corp" ? corp : other, { ...staff, ...claims });
    await addMember(server, { organizationId, email, administrator });
    expect(await new Browser().signIn(server, provider, id)).toBe(failed(problem));
  });
});

describe("the rules of the settings", () => {
  test("give and take the role of an administrator with the claim, at each sign-in", async () => {
    const { id, email } = await person(other, { groups: ["staff", "chartroom-admins"] });
    const browser = new Browser();
    const isAdministrator = async (...groups: string[]) => {
      await other.set(id, { email, email_verified: true, groups });
      expect(await browser.signIn(server, "other", id)).toBe(home());
      const { id: userId } = (await whoIn(browser)).body.subject;
      const { body } = await post(server, "UserService/GetUser", { userId }, token);
      const { members } = (await post(server, "OrganizationService/ListMembers", { organizationId }, token))
        .body;
      expect(body.user.id).toBe(userId);
      return members.find((each: { userId: string }) => each.userId === userId).role;
    };
    expect(await isAdministrator("staff", "chartroom-admins")).toBe("ORGANIZATION_ROLE_ADMIN");
    expect(await isAdministrator("staff")).toBe("ORGANIZATION_ROLE_MEMBER");
    expect(await isAdministrator("staff", "chartroom-admins-not")).toBe("ORGANIZATION_ROLE_MEMBER");
  });

  test("give and take the groups that the claim names, and no others, at each sign-in", async () => {
    const call = async (operation: string, body: object) =>
      (await post(server, `GroupService/${operation}`, body, token)).body;
    const { id, email } = await person(other, { groups: ["staff"] });
    const browser = new Browser();
    const groupsWith = async (teams: unknown) => {
      await other.set(id, { email, email_verified: true, groups: ["staff"], teams });
      expect(await browser.signIn(server, "other", id)).toBe(home());
      const userId = (await whoIn(browser)).body.subject.id;
      const { groups } = await call("ListGroups", {});
      const names = [];
      for (const { id: groupId, name } of groups) {
        const { members } = await call("ListMemberships", { groupId });
        if (members.some(({ subject }: { subject: { id: string } }) => subject.id === userId))
          names.push(name);
      }
      return { userId, names: names.sort() };
    };
    const { userId, names } = await groupsWith(["Payments", "Search", 7, ""]);
    expect(names).toEqual(["Payments", "Search"]);
    // By a person, so that the provider does not take it.
    const { group } = await call("CreateGroup", { organizationId, name: "By hand" });
    await call("CreateMembership", {
      groupId: group.id,
      subject: { id: userId, principal: "PRINCIPAL_USER" },
    });
    expect((await groupsWith(["SEARCH"])).names).toEqual(["By hand", "Search"]);
    expect((await groupsWith("Payments")).names).toEqual(["By hand", "Payments"]);
    expect((await groupsWith(undefined)).names).toEqual(["By hand"]);
  });

  test("keep out whom none fits, and who is of no allowed domain", async () => {
    const problemOf = async (claims: object) =>
      new Browser().signIn(server, "other", (await person(other, claims)).id);
    expect(await problemOf({ groups: ["guests"] })).toBe(failed("no_role"));
    expect(await problemOf({})).toBe(failed("no_role"));
    const staff = { groups: ["staff"] };
    expect(await problemOf({ ...staff, email: "a@example.com" })).toBe(failed("domain_not_allowed"));
    expect(await problemOf({ ...staff, email: "a@example.org.evil.com" })).toBe(failed("domain_not_allowed"));
    expect(await problemOf({ ...staff, email: "a@sub.example.org" })).toBe(failed("domain_not_allowed"));
    expect(await problemOf({ ...staff, email_verified: false })).toBe(failed("address_unverified"));
    expect(await problemOf({ ...staff, email: "Upper@EXAMPLE.org" })).toBe(home());
  });
});

describe("an answer of a provider", () => {
  test("is of use once, and in the browser that began alone", async () => {
    const { id } = await person(corp);
    const [victim, thief] = [new Browser(), new Browser()];
    const { url = "" } = await victim.begin(server, "corp");
    const cookies = victim.cookiesOf(server.url);
    const answer = await victim.atProvider(url, id);
    // Stolen state: another browser has the whole address, and has begun a sign-in of its own.
    expect(await thief.arrive(answer)).toBe(failed("expired"));
    await thief.begin(server, "corp");
    expect(await thief.arrive(answer)).toBe(failed("provider_failed"));
    expect(await isSignedIn(thief)).toBe(false);
    expect(await victim.arrive(answer)).toBe(home());
    // Replayed: here the browser has forgotten, and with the cookie kept the provider knows the code as used.
    const again = new Browser();
    expect(await again.arrive(answer)).toBe(failed("expired"));
    const flow = /__Host-chartroom-sign-in=([^;]+)/.exec(cookies)?.[1] ?? "";
    again.setCookie(server.url, "__Host-chartroom-sign-in", flow);
    expect(await again.arrive(answer)).toBe(failed("provider_failed"));
    expect(await isSignedIn(again)).toBe(false);
  });

  test("is of no use with another state, or a changed or foreign cookie", async () => {
    const { id } = await person(corp);
    const attempt = async (change: (browser: Browser, answer: URL) => void) => {
      const browser = new Browser();
      const { url = "" } = await browser.begin(server, "corp");
      const answer = new URL(await browser.atProvider(url, id));
      change(browser, answer);
      const place = await browser.arrive(answer.href);
      expect(await isSignedIn(browser)).toBe(place === home());
      return place;
    };
    expect(await attempt(() => undefined)).toBe(home());
    expect(await attempt((_, { searchParams }) => searchParams.set("state", "x".repeat(43)))).toBe(
      failed("provider_failed"),
    );
    expect(await attempt((_, { searchParams }) => searchParams.delete("state"))).toBe(
      failed("provider_failed"),
    );
    const flip = (browser: Browser) => {
      const value = /__Host-chartroom-sign-in=([^;]+)/.exec(browser.cookiesOf(server.url))?.[1] ?? "";
      browser.setCookie(
        server.url,
        "__Host-chartroom-sign-in",
        `${value.slice(0, -2)}${value.endsWith("AA") ? "BB" : "AA"}`,
      );
    };
    expect(await attempt(flip)).toBe(failed("expired"));
  });

  test("is not taken for that of another provider, nor with another issuer's name", async () => {
    const { id } = await person(corp);
    await other.set(id, { email: `mixed-${id}@example.org`, email_verified: true, groups: ["staff"] });
    const mixed = async (change: (answer: URL) => void, from = "corp" as "corp" | "other") => {
      const browser = new Browser();
      const { url = "" } = await browser.begin(server, from);
      const answer = new URL(await browser.atProvider(url, id));
      expect(answer.searchParams.get("iss")).toBe((from === "corp" ? corp : other).issuer);
      change(answer);
      const place = await browser.arrive(answer.href);
      expect(await isSignedIn(browser)).toBe(false);
      return place;
    };
    const to = (provider: string) => (answer: URL) => {
      answer.pathname = `/sign-in/callback/${provider}`;
    };
    // What began with one provider opens at no other.
    expect(await mixed(to("other"))).toBe(failed("expired"));
    expect(await mixed(to("corp"), "other")).toBe(failed("expired"));
    expect(await mixed(({ searchParams }) => searchParams.set("iss", other.issuer))).toBe(
      failed("provider_failed"),
    );
    expect(await mixed(({ searchParams }) => searchParams.delete("iss"))).toBe(failed("provider_failed"));
  });

  // The tolerance is 30 seconds, and a token of this provider holds 60.
  test.each([
    ["ahead by less than the tolerance", 15, true],
    ["ahead by more than the tolerance", 50, false],
    ["behind, within a token's time and the tolerance", -70, true],
    ["behind by more than both", -110, false],
  ])("of a provider whose clock is %s", async (_, seconds, holds) => {
    const { id } = await person(clock);
    await clock.setClock(seconds * 1000);
    const browser = new Browser();
    expect(await browser.signIn(server, "clock", id)).toBe(holds ? home() : failed("provider_failed"));
    expect(await isSignedIn(browser)).toBe(holds);
  });

  test("sends the browser to the sign-in page alone, whatever it names", async () => {
    const { id } = await person(corp);
    const browser = new Browser();
    const { url = "" } = await browser.begin(server, "corp");
    const answer = await browser.atProvider(url, id);
    const more =
      "&redirect_uri=https://evil.example.org&return_to=//evil.example.org&next=https://evil.example.org";
    expect(await browser.arrive(answer + more)).toBe(home());
    for (const query of ["", "?error=//evil.example.org", "?problem=https://evil.example.org"]) {
      expect(await browser.arrive(`${originOf(server)}/sign-in/callback/corp${query}`)).toBe(
        failed("expired"),
      );
    }
    const res = await browser.send(`${originOf(server)}/sign-in/callback/none`);
    expect(res.status).toBe(404);
  });

  test("begins another session each time, and replaces nobody else's silently", async () => {
    const [first, second] = [await person(corp), await person(corp)];
    const browser = new Browser();
    // Fixation: a session that somebody has put there is not taken up.
    browser.setCookie(server.url, "__Host-chartroom", `cr_ses_${"a".repeat(36)}`);
    await browser.signIn(server, "corp", first.id);
    const before = browser.cookiesOf(server.url);
    expect(before).not.toContain("aaaa");
    expect(await browser.signIn(server, "corp", first.id)).toBe(home());
    expect(browser.cookiesOf(server.url)).not.toBe(before);
    const replayed = await post(server, WHOAMI, {}, "", { cookie: before, origin: originOf(server) });
    expect(replayed.status).toBe(401);
    const kept = (await whoIn(browser)).body.subject;
    // The provider has the first person still: another browser's session there is the second's.
    const there = new Browser();
    there.setCookie(
      server.url,
      "__Host-chartroom",
      browser.cookiesOf(server.url).replace("__Host-chartroom=", ""),
    );
    expect(await there.signIn(server, "corp", second.id)).toBe(failed("signed_in"));
    expect((await whoIn(there)).body.subject).toEqual(kept);
    expect(await there.signIn(server, "corp", second.id, true)).toBe(home());
    expect((await whoIn(there)).body.subject).not.toEqual(kept);
    expect(await isSignedIn(browser)).toBe(false);
  });
});

describe("a sign-in with a provider", () => {
  test.each([
    ["another origin", { origin: "https://evil.example.org" }, 403],
    ["no origin", {}, 403],
    ["a form", { origin: "own", "content-type": "application/x-www-form-urlencoded" }, 415],
  ])("is begun by the page alone: not by %s", async (_, headers: Record<string, string>, status) => {
    const own = originOf(server);
    const res = await fetch(`${server.url}/sign-in/begin/corp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...headers,
        ...(headers.origin === "own" && { origin: own }),
      },
      body: "{}",
    });
    expect([res.status, res.headers.get("set-cookie")]).toEqual([status, null]);
  });

  test("leaves no code, state or secret in the log or the data", async () => {
    const { id } = await person(corp);
    const browser = new Browser();
    const { url = "" } = await browser.begin(server, "corp");
    const answer = new URL(await browser.atProvider(url, id));
    await browser.arrive(answer.href);
    await browser.arrive(answer.href);
    const rows = await withRawData(server.dataDir, (data) => data.rows("select * from token"));
    const said = server.logText() + JSON.stringify(rows);
    const session = /__Host-chartroom=([^;]+)/.exec(browser.cookiesOf(server.url))?.[1] ?? "none";
    for (const secret of [
      session,
      answer.searchParams.get("code") ?? "none",
      answer.searchParams.get("state") ?? "none",
      "the secret of chartroom",
    ]) {
      expect(said).not.toContain(secret);
    }
    expect(said).toContain('"provider":"corp"');
  });
});

describe("joining an organization by its id", () => {
  test("takes an address that a provider has verified in its invite domains, and no other", async () => {
    const elsewhere = await addOrganization(server, "elsewhere");
    const domains = (...names: string[]) =>
      post(
        server,
        "OrganizationService/UpdateOrganization",
        { organizationId: elsewhere.organizationId, inviteDomains: { domains: names } },
        elsewhere.token,
      );
    const { id } = await person(corp);
    const browser = new Browser();
    await browser.signIn(server, "corp", id);
    const join = async (headers: Record<string, string>, as = "") =>
      post(
        server,
        "OrganizationService/JoinOrganization",
        { organizationId: elsewhere.organizationId },
        as,
        headers,
      );
    const asPerson = () => ({ cookie: browser.cookiesOf(server.url), origin: originOf(server) });
    const none = await join(asPerson());
    expect([none.status, reasonOf(none)]).toEqual([404, "NOT_FOUND"]);
    await domains("example.com", "b.example.org");
    expect((await join(asPerson())).status).toBe(404);
    await domains("example.com", "example.org");
    // An address that no provider has verified does not count, though it is of that domain.
    const plain = await addMember(server, { organizationId, email: "plain@example.org" });
    expect((await join({}, plain.token)).status).toBe(404);
    const joined = await join(asPerson());
    expect([joined.status, joined.body.member.role]).toEqual([200, "ORGANIZATION_ROLE_MEMBER"]);
    expect((await join(asPerson())).body.member).toEqual(joined.body.member);
    // A person who was removed does not come back by it.
    await post(
      server,
      "OrganizationService/RemoveMember",
      { organizationId: elsewhere.organizationId, userId: joined.body.member.userId },
      elsewhere.token,
    );
    expect((await join(asPerson())).status).toBe(404);
    // What the provider does not call verified any more does not count, either.
    const late = await person(corp);
    const lateBrowser = new Browser();
    await lateBrowser.signIn(server, "corp", late.id);
    await corp.set(late.id, { email: late.email, email_verified: false });
    await lateBrowser.signIn(server, "corp", late.id);
    const lateHeaders = { cookie: lateBrowser.cookiesOf(server.url), origin: originOf(server) };
    expect((await join(lateHeaders)).status).toBe(404);
  });
});

describe("back-channel logout", () => {
  test("ends the sessions of the person, or of the provider's one session, at once", async () => {
    const [person1, person2] = [await person(corp), await person(corp)];
    const [first, second, elsewhere] = [new Browser(), new Browser(), new Browser()];
    await first.signIn(server, "corp", person1.id);
    await second.signIn(server, "corp", person1.id);
    await elsewhere.signIn(server, "corp", person2.id);
    const [sid] = await withRawData(server.dataDir, (data) =>
      data.rows<{ provider_session_id: string }>(
        "select provider_session_id from token where kind = 'session' and identity_id in (select id from provider_identity where subject = ?) order by id",
        person1.id,
      ),
    );
    expect(sid?.provider_session_id).toMatch(/./);
    await corp.logout(person1.id, sid?.provider_session_id);
    expect(await Promise.all([first, second, elsewhere].map(isSignedIn))).toEqual([false, true, true]);
    await corp.logout(person1.id);
    expect(await Promise.all([second, elsewhere].map(isSignedIn))).toEqual([false, true]);
    // A session that began by a link is not the provider's to end.
    const { token: own } = await addMember(server, {
      organizationId,
      email: `own-${person1.id}@example.org`,
    });
    const { cookie } = await signIn(server, own);
    await corp.logout(person2.id);
    expect(await isSignedIn(elsewhere)).toBe(false);
    expect((await post(server, WHOAMI, {}, "", { cookie, origin: originOf(server) })).status).toBe(200);
  });

  test("ends what became of a session in another organization, which leads back by the provider alone", async () => {
    const { id, email } = await person(corp);
    const browser = new Browser();
    await browser.signIn(server, "corp", id);
    const { organizationId: elsewhere } = await addOrganization(server, "switched");
    await addMember(server, { organizationId: elsewhere, email });
    const send = (path: "organizations" | "organization", body: object) =>
      page(server, path, body, { cookie: browser.cookiesOf(server.url) });
    const changed = await send("organization", { organizationId: elsewhere });
    const [name = "", value = ""] = changed.header.get("set-cookie")?.split(";")[0]?.split("=") ?? [];
    browser.setCookie(server.url, name, value);
    expect((await whoIn(browser)).body.organizationId).toBe(elsewhere);
    const { organizations } = (await send("organizations", {})).body;
    const own = organizations.find((each: { id: string }) => each.id === organizationId);
    expect(own).toMatchObject({ current: false, providers: [{ id: "corp", name: "Corporate" }] });
    // The provider decides each time whether the person may come in.
    const back = await send("organization", { organizationId });
    expect([back.status, back.body.details[0].debug.metadata.phase]).toEqual([400, "provider_signs_in"]);
    await corp.logout(id);
    expect(await isSignedIn(browser)).toBe(false);
  });

  test("takes a logout token of that provider alone", async () => {
    for (const body of [
      "",
      "logout_token=",
      "logout_token=a.b.c",
      "{}",
      `logout_token=${"x".repeat(17_000)}`,
    ]) {
      const res = await fetch(`${server.url}/sign-in/logout/corp`, {
        method: "POST",
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body,
      });
      expect([res.status, await res.json()]).toEqual([
        400,
        expect.objectContaining({ error: "invalid_request" }),
      ]);
    }
  });
});
