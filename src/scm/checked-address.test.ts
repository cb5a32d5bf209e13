import { describe, expect, test } from "@jest/globals";
import { areAllAllowed, checkedLookup, requireAllowedAddress } from "./host-request.ts";

const allowing = (allowPrivateAddresses: boolean) => ({
  allowPrivateAddresses,
  plainHttpHosts: new Set<string>(),
});

/** What the look-up calls back with. */
const lookUp = (hostname: string, options: object, allowPrivateAddresses: boolean): Promise<unknown[]> =>
  new Promise((resolve) => {
    checkedLookup("git.example.org", allowing(allowPrivateAddresses))(hostname, options, (...answer) =>
      resolve(answer),
    );
  });

describe("the look-up of a host's address", () => {
  test("answers one address or all, as asked", async () => {
    expect(await lookUp("localhost", { family: 4 }, true)).toEqual([null, "127.0.0.1", 4]);
    const all = [{ address: "127.0.0.1", family: 4 }];
    expect(await lookUp("localhost", { family: 4, all: true }, true)).toEqual([null, all]);
  });

  test.each([{}, { all: true }, { family: 4 }])(
    "with %j refuses a name whose address is not public",
    async (options) => {
      const [error, address] = await lookUp("localhost", options, false);
      expect(error).toMatchObject({ kind: "refused", host: "git.example.org" });
      expect(address).toBe("");
    },
  );

  test("tells when there is no such name", async () => {
    expect(await lookUp("nobody.invalid", { all: true }, false)).toMatchObject([
      { syscall: "getaddrinfo" },
      "",
    ]);
  });
});

test("a written address is held against the same table, and a name is left to the look-up", () => {
  for (const address of ["127.0.0.1", "::1", "10.0.0.1", "::ffff:10.0.0.1"]) {
    expect(() => requireAllowedAddress(address, "h", allowing(false))).toThrow("not public");
    expect(() => requireAllowedAddress(address, "h", allowing(true))).not.toThrow();
  }
  for (const name of ["8.8.8.8", "2606:4700::1", "localhost"]) {
    expect(() => requireAllowedAddress(name, "h", allowing(false))).not.toThrow();
  }
});

test("a name with one address that is not public among others is not reached", () => {
  const open = { address: "8.8.8.8", family: 4 };
  const closed = { address: "fd00::1", family: 6 };
  expect(areAllAllowed([open, open], allowing(false))).toBe(true);
  for (const addresses of [[open, closed], [closed, open], [closed]]) {
    expect(areAllAllowed(addresses, allowing(false))).toBe(false);
    expect(areAllAllowed(addresses, allowing(true))).toBe(true);
  }
});
