import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { ConfigError } from "./settings.ts";
import { readSignInProviders } from "./sign-in-providers.ts";

const folder = mkdtempSync(join(tmpdir(), "chartroom-providers-"));
afterAll(() => rmSync(folder, { recursive: true }));

const GOOD = {
  id: "corp",
  issuer: "https://id.example.org",
  clientId: "chartroom",
  organizationId: "01890A5D-ac96-774b-bcce-b302099a8057",
};
const ENV = { SECRET: " the secret\n", EMPTY: " " };

function read(file: unknown) {
  const path = join(folder, "providers.json");
  writeFileSync(path, typeof file === "string" ? file : JSON.stringify(file));
  return readSignInProviders(path, ENV);
}

function problemsOf(file: unknown): readonly string[] {
  try {
    read(file);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((each) => each.replace(/^.*json: /, ""));
    throw error;
  }
  return [];
}

test("reads a provider with its defaults, and nothing without a file", () => {
  expect(readSignInProviders("", ENV)).toEqual([]);
  expect(read({ providers: [GOOD] })).toEqual([
    {
      ...GOOD,
      ...{
        name: "corp",
        organizationId: GOOD.organizationId.toLowerCase(),
        scopes: ["openid", "email", "profile"],
      },
      ...{
        clientSecret: undefined,
        clientAuthentication: "basic",
        allowedDomains: [],
        createsAccounts: true,
      },
      ...{ linksByEmail: false, roles: [], refusesOthers: false, groupsClaim: "" },
    },
  ]);
});

test("reads the secret from a file next to it, or from the environment", () => {
  writeFileSync(join(folder, "secret"), "of a file\n");
  const secretOf = (fields: object) => read({ providers: [{ ...GOOD, ...fields }] })[0]?.clientSecret;
  expect(secretOf({ clientSecretFile: "secret" })).toBe("of a file");
  expect(secretOf({ clientSecretFile: join(folder, "secret") })).toBe("of a file");
  expect(secretOf({ clientSecretVariable: "SECRET" })).toBe("the secret");
});

test.each([
  [{ id: "Corp" }, "id must be 1 to 32 lower-case letters, digits and hyphens"],
  [{ id: "x".repeat(33) }, "id must be 1 to 32 lower-case letters, digits and hyphens"],
  [{ issuer: "http://id.example.org" }, "issuer must be https"],
  [{ issuer: "http://127.0.0.1.example.org" }, "issuer must be https"],
  [{ issuer: "id.example.org" }, "issuer must be the issuer's URL"],
  [{ issuer: "https://me@id.example.org" }, "issuer must be a URL without"],
  [{ clientId: "" }, "clientId must be the id that the provider has given"],
  [
    { organizationId: "mine" },
    "organizationId must be the id of an organization: chartroom organization list",
  ],
  [{ clientSecretFile: "absent" }, "clientSecretFile cannot be read"],
  [
    { clientSecretVariable: "ABSENT" },
    "clientSecretVariable holds nothing: put the client's secret into ABSENT",
  ],
  [{ clientSecretVariable: "EMPTY" }, "clientSecretVariable holds nothing"],
  [{ clientSecretFile: "a", clientSecretVariable: "SECRET" }, "clientSecretFile and clientSecretVariable"],
  [{ clientAuthentication: "jwt" }, 'clientAuthentication must be "basic" or "post"'],
  [{ scopes: ["email"] }, 'scopes must list scopes, "openid" among them'],
  [{ allowedDomains: ["@example.org"] }, "allowedDomains must list mail domains"],
  [{ createAccounts: "no" }, "createAccounts must be true or false"],
  [{ linkByEmail: 1 }, "linkByEmail must be true or false"],
  [{ others: "deny" }, 'others must be "member" or "refuse"'],
  [{ roles: {} }, "roles must be a list"],
  [{ groupsClaim: ["groups"] }, "groupsClaim must be the name of a claim"],
  [
    { roles: [{ claim: "g", value: "v", role: "owner" }] },
    'roles[0].role must be "administrator" or "member"',
  ],
  [{ secret: "the secret" }, "secret is not known; there are id, name,"],
])("says what is wrong with %j", (fields, problem) => {
  const [found, ...more] = problemsOf({ providers: [{ ...GOOD, ...fields }] });
  expect(found).toContain(problem);
  expect([more, found?.includes("the secret")]).toEqual([[], false]);
});

test("says what is wrong with the file", () => {
  expect(problemsOf("{")).toEqual([expect.stringContaining("cannot be read as JSON")]);
  expect(problemsOf([])).toEqual(["the file must be an object"]);
  expect(problemsOf({ providers: [GOOD, GOOD] })).toEqual(["providers: every id must be another one"]);
  const many = (count: number) => ({
    providers: Array.from({ length: count }, (_, index) => ({ ...GOOD, id: `p${index}` })),
  });
  expect([problemsOf(many(19)), problemsOf(many(20))]).toEqual([[], []]);
  expect(problemsOf(many(21))).toEqual(["providers: at most 20"]);
  expect(problemsOf({ providers: [7] })[0]).toContain("providers[0] must be an object");
  expect(() => readSignInProviders(join(folder, "absent"), ENV)).toThrow("cannot be read");
});
