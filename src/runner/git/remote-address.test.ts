import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../test/harness/seed.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import {
  parseRemote,
  type RemoteSettings,
  resolveCheckedAddresses,
  systemResolve,
} from "./remote-address.ts";

const PUBLIC: RemoteSettings = { allowPrivateAddresses: false, allowFiles: false, plainHttpHosts: new Set() };
const PRIVATE: RemoteSettings = { ...PUBLIC, allowPrivateAddresses: true };
const FILES: RemoteSettings = { ...PUBLIC, allowFiles: true };

describe("a remote that may be reached", () => {
  test.each([
    [
      "https://git.example.org/o/r.git",
      "https",
      "https://git.example.org/o/r.git",
      "",
      "git.example.org",
      443,
    ],
    ["HTTPS://GIT.Example.org:443/o/R", "https", "https://git.example.org/o/R", "", "git.example.org", 443],
    [
      "http://git.example.org:8080/o/r",
      "http",
      "http://git.example.org:8080/o/r",
      "",
      "git.example.org:8080",
      8080,
    ],
    [
      "https://ada@git.example.org/o/r",
      "https",
      "https://git.example.org/o/r",
      "ada",
      "git.example.org",
      443,
    ],
    ["https://a%40b@git.example.org/r", "https", "https://git.example.org/r", "a@b", "git.example.org", 443],
    ["https://git.example.org/r?a=b#c", "https", "https://git.example.org/r?a=b", "", "git.example.org", 443],
    [
      "https://bücher.example/r",
      "https",
      "https://xn--bcher-kva.example/r",
      "",
      "xn--bcher-kva.example",
      443,
    ],
    ["http://[2001:DB8::7]:81/r", "http", "http://[2001:db8::7]:81/r", "", "[2001:db8::7]:81", 81],
    ["ssh://git@git.example.org/o/r", "ssh", "ssh://git@git.example.org/o/r", "git", "git.example.org", 22],
    ["ssh://git.example.org:2222/r", "ssh", "ssh://git.example.org:2222/r", "", "git.example.org:2222", 2222],
    ["ssh://git@[2001:db8::7]/r", "ssh", "ssh://git@[2001:db8::7]/r", "git", "[2001:db8::7]", 22],
    ["git@git.example.org:o/r.git", "ssh", "git@git.example.org:o/r.git", "git", "git.example.org", 22],
    ["git.example.org:r", "ssh", "git.example.org:r", "", "git.example.org", 22],
    ["git@[2001:db8::7]:o/r", "ssh", "git@[2001:db8::7]:o/r", "git", "[2001:db8::7]", 22],
  ])("%s", (text, scheme, address, user, host, port) => {
    const hostname = host.replace(/:\d+$/, "").replace(/[[\]]/g, "");
    const plain = host.startsWith("[") ? "2001:db8::7" : hostname;
    expect(parseRemote(text, PUBLIC)).toEqual({ scheme, address, user, host, hostname: plain, port });
  });

  test.each(["file:///srv/git/r.git", "file://localhost/srv/git/r.git"])(
    "%s, where the settings allow it",
    (text) => {
      expect(parseRemote(text, FILES)).toMatchObject({
        scheme: "file",
        address: "file:///srv/git/r.git",
        host: "",
      });
      expect(() => parseRemote(text, PUBLIC)).toThrow("its operator can allow those");
    },
  );
});

describe("a remote that is refused", () => {
  test.each([
    "",
    "r",
    "/srv/git/r.git",
    "./r",
    "ext::sh -c id",
    "ext::sh%20-c%20id",
    "fd::17",
    "git://git.example.org/o/r",
    "ftp://git.example.org/o/r",
    "git+ssh://git.example.org/o/r",
    "::r",
    "javascript://git.example.org/r",
    "SSH://git.example.org/r",
    "ssh://git.example.org",
    "ssh://git.example.org?/r",
    "ssh://git.example.org#/r",
    "ssh://[2001:db8::7]?x/r",
    "ssh://git.example.org\\@other.example/r",
    "git.example.org?x:r",
    "git.example.org\\:r",
    "ssh:r://git.example.org/r",
    "https://",
    "https://user:word@git.example.org/r",
    "https://:word@git.example.org/r",
    "ssh://git:word@git.example.org/r",
    "https://git.example.org /r",
    "https://git.example.org/r\n",
    "https://git.example\u2028.org/r",
    "git@git.example.org:r\0",
    "--upload-pack=id",
    "-oProxyCommand=id:r",
    "ssh://-oProxyCommand=id/r",
    "ssh://-oProxyCommand=id@git.example.org/r",
    "-oProxyCommand=id@git.example.org:r",
    "ssh://git@git.example.org%20/r",
    "ssh://git%20x@git.example.org/r",
    "ssh:///r",
    "https://git.example.org./r",
    "https://a'b.example/r",
    "https://a,b.example/r",
    "https://%ff@git.example.org/r",
    "file://other.example/r",
  ])("%j", (text) => {
    expect(() => parseRemote(text, { ...FILES, allowPrivateAddresses: true })).toThrow(WorkFailure);
  });

  test("is not quoted, for it may hold a secret", () => {
    for (const text of ["https://user:top-secret@git.example.org/r", "nonsense://top-secret", "top-secret"]) {
      expect(() => parseRemote(text, PUBLIC)).toThrow(
        expect.objectContaining({ message: expect.not.stringContaining("top-secret") }),
      );
    }
  });

  test("is a failure of the work, whatever its text is", () => {
    const start = fc.constantFrom("https://", "ssh://git@", "git@", "file://", "");
    fc.assert(
      fc.property(start, fc.string({ unit: "binary", maxLength: 40 }), (before, after) => {
        let failure: unknown;
        try {
          parseRemote(before + after, FILES);
        } catch (error) {
          failure = error;
        }
        if (failure !== undefined) expect(failure).toBeInstanceOf(WorkFailure);
      }),
      replay,
    );
  });
});

const at =
  (...addresses: string[]) =>
  async () =>
    addresses;
const named = parseRemote("https://git.example.org/r", PUBLIC);

describe("the addresses of a name", () => {
  test.each([[["8.8.8.8"]], [["2606:4700::1", "8.8.4.4"]], [["64:ff9b::808:808"]]])(
    "%j are reached",
    async (addresses) => {
      expect(await resolveCheckedAddresses(named, PUBLIC, at(...addresses))).toEqual(addresses);
    },
  );

  test.each([
    [["127.0.0.1"]],
    [["10.0.0.1"]],
    [["172.16.0.1"]],
    [["192.168.0.1"]],
    [["100.64.0.1"]],
    [["169.254.169.254"]],
    [["0.0.0.0"]],
    [["::1"]],
    [["::"]],
    [["fe80::1"]],
    [["fe80::1%eth0"]],
    [["fd00:ec2::254"]],
    [["::ffff:127.0.0.1"]],
    [["::ffff:a9fe:a9fe"]],
    [["64:ff9b::7f00:1"]],
    [["8.8.8.8", "127.0.0.1"]],
    [["2606:4700::1", "fc00::1"]],
  ])("%j are refused, unless private ones are allowed", async (addresses) => {
    await expect(resolveCheckedAddresses(named, PUBLIC, at(...addresses))).rejects.toMatchObject({
      reason: "remote_refused",
      message: expect.stringContaining("git.example.org is at an address that is not public"),
      retriable: false,
    });
    expect(await resolveCheckedAddresses(named, PRIVATE, at(...addresses))).toEqual(addresses);
  });

  test("are missing when the name has none, which may change", async () => {
    const failing = () => Promise.reject(new Error("ENOTFOUND"));
    for (const resolve of [failing, at()]) {
      await expect(resolveCheckedAddresses(named, PRIVATE, resolve)).rejects.toMatchObject({
        reason: "remote_unreachable",
        retriable: true,
      });
    }
  });

  test("are found as the machine finds them", async () => {
    const local = parseRemote("https://localhost/r", PUBLIC);
    await expect(resolveCheckedAddresses(local, PUBLIC, systemResolve)).rejects.toThrow("not public");
    expect(await resolveCheckedAddresses(local, PRIVATE, systemResolve)).toContain("127.0.0.1");
  });
});

describe("a host that is written as an address", () => {
  test.each([
    "https://127.0.0.1/r",
    "https://0x7f.1/r",
    "https://2130706433/r",
    "https://0177.0.0.1/r",
    "https://①②⑦.0.0.1/r",
    "https://[::1]/r",
    "https://[::ffff:127.0.0.1]/r",
    "ssh://git@127.0.0.1/r",
    "ssh://git@[::1]/r",
    "ssh://0x7f.1/r",
    "git@[::ffff:10.0.0.1]:r",
    "git@169.254.169.254:r",
  ])("%s is judged by the address that it means", async (text) => {
    const remote = parseRemote(text, PUBLIC);
    await expect(resolveCheckedAddresses(remote, PUBLIC, systemResolve)).rejects.toMatchObject({
      reason: "remote_refused",
    });
  });

  test("is not looked up", async () => {
    const never = () => Promise.reject(new Error("a look-up"));
    const remote = parseRemote("https://[2606:4700::1]:8443/r", PUBLIC);
    expect(await resolveCheckedAddresses(remote, PUBLIC, never)).toEqual(["2606:4700::1"]);
  });
});

test("a folder has no address", async () => {
  const never = () => Promise.reject(new Error("a look-up"));
  expect(await resolveCheckedAddresses(parseRemote("file:///srv/r", FILES), PUBLIC, never)).toEqual([]);
});
