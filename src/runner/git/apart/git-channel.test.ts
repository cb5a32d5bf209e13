import { describe, expect, test } from "@jest/globals";
import { parseRemote } from "../remote-address.ts";
import { checkedSshArguments } from "./git-channel.ts";

const settings = { allowPrivateAddresses: true, allowFiles: false, plainHttpHosts: new Set<string>() };
const V2 = ["-o", "SendEnv=GIT_PROTOCOL"];
const checked = (remote: string, args: unknown) =>
  checkedSshArguments(JSON.stringify(args), parseRemote(remote, settings));

describe("a connection by ssh is started for git", () => {
  test.each<[string, string[]]>([
    ["git@Git.example.org:team/ship.git", [...V2, "git@Git.example.org", "git-upload-pack 'team/ship.git'"]],
    ["git@git.example.org:team/ship.git", ["git@git.example.org", "git-receive-pack 'team/ship.git'"]],
    [
      "ssh://git@git.example.org/team/it's.git",
      ["git@git.example.org", "git-upload-pack '/team/it'\\''s.git'"],
    ],
    [
      "ssh://git@git.example.org:2222/team/a%20b.git",
      [...V2, "-p", "2222", "git@git.example.org", "git-upload-pack '/team/a b.git'"],
    ],
    ["ssh://git.example.org/~ada/ship", [...V2, "git.example.org", "git-upload-pack '~ada/ship'"]],
    ["ssh://git@[2001:db8::1]/ship", ["git@2001:db8::1", "git-upload-pack '/ship'"]],
  ])("to %s, as it asks for it", (remote, args) => {
    expect(checked(remote, args)).toEqual(args);
  });

  const REMOTE = "ssh://git@git.example.org:2222/team/ship.git";
  const GOOD = ["-p", "2222", "git@git.example.org", "git-upload-pack '/team/ship.git'"];

  test.each<[string, unknown]>([
    ["to another host", GOOD.with(2, "git@other.example.org")],
    ["as another user", GOOD.with(2, "root@git.example.org")],
    ["as no user", GOOD.with(2, "git.example.org")],
    ["to another port", GOOD.with(1, "22")],
    ["to the usual port", GOOD.slice(2)],
    ["for another repository", GOOD.with(3, "git-upload-pack '/team/other.git'")],
    ["for more than the repository", GOOD.with(3, "git-upload-pack '/team/ship.git'; id")],
    ["for another program", GOOD.with(3, "git-upload-archive '/team/ship.git'")],
    ["with a program of its own", ["-o", "ProxyCommand=id", ...GOOD]],
    ["with a key of its own", ["-i", "/keys/id", ...GOOD]],
    ["with more words", [...GOOD, "id"]],
    ["without words", []],
    ["with what is no list", "id"],
    ["with what is no text", [...GOOD.slice(0, 3), { a: 1 }]],
  ])("never %s", (_, args) => {
    expect(checked(REMOTE, GOOD)).toEqual(GOOD);
    expect(checked(REMOTE, args)).toBeUndefined();
  });

  test("never where it does not say what it asks for", () => {
    expect(checkedSshArguments("git", parseRemote(REMOTE, settings))).toBeUndefined();
  });
});
