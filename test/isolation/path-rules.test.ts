import { copyFileSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { NO_RULES, type PathRules } from "../../src/runner/isolation/path-rules.ts";
import { commandEnvironment } from "../../src/runner/process/command.ts";
import { realPrograms } from "../harness/runner-git.ts";
import { temporaryFolder } from "../harness/server.ts";
import { bare, bubblewrap, enter, type Place, removeAll } from "./sandboxes.ts";

const RULES: PathRules = {
  executables: ["find", "/usr/bin/wc", "perl", "no-such-program"],
  denied: [
    "/etc/os-release",
    "/usr/share/doc",
    "/home/work/.kept",
    "/home/work/absent/file",
    "/tmp/denied",
    "/dev/tty",
    "/dev/no-such-device",
    "/proc/cpuinfo",
    "/root/nothing",
    "/usr/no-such-file",
  ],
  readOnly: ["/home/work/settings", "/home/work/later", "/usr/share/dict"],
};

let ruled: Place;
let free: Place;

/** Makes the files of a workspace that rules name. */
const fill = (place: Place) =>
  place.sh(
    "rm -f ~/.kept ~/settings /tmp/denied && echo kept > ~/.kept && echo one > ~/settings && echo > /tmp/denied",
  );

beforeAll(async () => {
  free = await enter(await bubblewrap());
  const isolation = await bubblewrap();
  const unruled = await enter(isolation);
  await fill(unruled);
  ruled = await enter(isolation, undefined, RULES, unruled.workspace);
});
afterAll(removeAll);

describe("rules by path keep work from", () => {
  test.each([
    ["starting a program by its name", "find . -maxdepth 0"],
    ["starting it by its path", "/usr/bin/find . -maxdepth 0"],
    ["starting it by the path of the folder that is a link", "/bin/find . -maxdepth 0"],
    ["starting a program that is named by its path", "echo | wc"],
    ["starting the program behind a link", "perl -e 1"],
    ["copying a program to start it", "cp /usr/bin/find mine && ./mine . -maxdepth 0"],
    ["reading a file of the system", "cat /etc/os-release"],
    ["listing a folder of the system", "ls /usr/share/doc"],
    ["reading a file of its home", "cat ~/.kept"],
    ["reading it by the path of the home", "cat /home/work/.kept"],
    ["replacing it", "echo > ~/new && mv ~/new ~/.kept"],
    ["removing it", "cp ~/.kept ~/k && rm -f ~/.kept"],
    ["letting it be read", "chmod 644 ~/.kept && cat ~/.kept"],
    ["changing a file in /tmp", "echo > /tmp/denied"],
    ["a device", "test -c /dev/tty"],
    ["what the kernel tells", "cat /proc/cpuinfo"],
    ["changing a file that may be read", "echo two > ~/settings"],
    ["replacing a file that may be read", "echo two > ~/new; mv ~/new ~/settings"],
  ])("%s", async (_, script) => {
    await fill(free);
    expect(await ruled.sh(`${script} 2>&1`)).not.toMatchObject({ exit: 0 });
    expect(await free.sh(`${script} 2>&1`)).toMatchObject({ exit: 0 });
  });

  test("nothing else", async () => {
    await fill(free);
    const script = "cat ~/settings; ls / > /dev/null && echo a > ~/b && cat ~/b; sed --version | head -1";
    const [kept, open] = [await ruled.sh(script), await free.sh(script)];
    expect(kept).toMatchObject({ exit: 0, text: open.text });
    expect(readFileSync(join(ruled.workspace.home, ".kept"), "utf8")).toBe("kept\n");
  });
});

test("a command whose own program is denied is not started, with the reason", async () => {
  const starting = ruled.run({
    ...{ program: "find", args: ["."], folder: ruled.workspace.tree },
    environment: commandEnvironment(realPrograms, ruled.workspace.home),
  });
  await expect(starting).rejects.toMatchObject({
    reason: "command_not_started",
    message: expect.stringContaining("policies deny it"),
  });
});

test("a link of the work has no rule make anything outside", async () => {
  const isolation = await bubblewrap();
  const place = await enter(isolation);
  const outside = temporaryFolder();
  symlinkSync("/usr/bin", join(place.workspace.home, "link"));
  symlinkSync(`/oldroot${outside}/made`, join(place.workspace.home, "made"));
  const denied = ["/home/work/link/env", "/home/work/made", "/home/work/link/none"];
  const rules = { executables: [], readOnly: [], denied };
  const inside = await enter(isolation, undefined, rules, place.workspace);
  expect(await inside.sh("true")).toMatchObject({ exit: 0 });
  expect(await inside.sh("cat ~/link/env > /dev/null")).not.toMatchObject({ exit: 0 });
  expect(readdirSync(outside)).toEqual([]);
});

test("no link in the place of a folder above a rule shows anything of the machine", async () => {
  const isolation = await bubblewrap();
  const place = await enter(isolation);
  // Next to the folder of the workspace, where the runner has its own files.
  const key = join(dirname(place.workspace.folder), "key");
  writeFileSync(key, "secret of the machine", { mode: 0o644 });
  await place.sh("mkdir -p ~/.config/app /tmp/d && echo one > ~/.config/app/a && echo one > /tmp/d/a");
  const readOnly = ["/home/work/.config/app/a", "/tmp/d/a"];
  const ruled = await enter(isolation, undefined, { ...NO_RULES, readOnly }, place.workspace);
  const up = relative(join(place.workspace.home, ".config/app"), key);
  for (const folder of ["~/.config", "~/.config/app", "/tmp/d", "/var/tmp/d"])
    expect(await ruled.sh(`mv ${folder} ${folder}2 2>&1`)).toMatchObject({
      exit: 1,
      text: expect.stringContaining("busy"),
    });
  await ruled.sh(`rm -rf ~/.config; mkdir -p ~/.config/app; ln -sfn ${up} ~/.config/app/a`);
  const shown = await ruled.sh(`cat ${key} 2>&1; cat ~/.config/app/a /tmp/d/a`);
  expect(shown).toMatchObject({ exit: 0, text: expect.stringMatching(/No such file.*\none\none\n$/s) });
  expect(await ruled.sh("echo > ~/.config/app/other && echo > /tmp/d/other")).toMatchObject({ exit: 0 });
});

test("no link in the way to a rule in /tmp is followed", async () => {
  const isolation = await bubblewrap();
  const place = await enter(isolation);
  writeFileSync(join(place.workspace.folder, "kept"), "next to the workspace", { mode: 0o644 });
  await place.sh("ln -s .. /tmp/up");
  const readOnly = ["/tmp/up/kept"];
  const ruled = await enter(isolation, undefined, { ...NO_RULES, readOnly }, place.workspace);
  expect(await ruled.sh("cat /tmp/up/kept /kept 2>/dev/null")).toMatchObject({ exit: 1, text: "" });
});

test("rules hold under both names of /tmp, and whatever they lie in", async () => {
  const isolation = await bubblewrap();
  const place = await enter(isolation);
  await place.sh(
    "mkdir -p /tmp/d/e /tmp/f/e && echo a > /tmp/d/secret && echo a > /tmp/d/e/kept; echo a > /tmp/f/e/x",
  );
  const rules = { ...NO_RULES, readOnly: ["/tmp/d"], denied: ["/tmp/d/secret", "/tmp/f/e/x", "/tmp/f/e"] };
  const ruled = await enter(isolation, undefined, rules, place.workspace);
  for (const tmp of ["/tmp", "/var/tmp"]) {
    expect(await ruled.sh(`cat ${tmp}/d/e/kept`)).toMatchObject({ exit: 0 });
    for (const script of [
      `cat ${tmp}/d/secret`,
      `echo > ${tmp}/d/e/kept`,
      `ls ${tmp}/f/e`,
      `cat ${tmp}/f/e/x`,
    ])
      expect(await ruled.sh(`${script} 2>&1`)).not.toMatchObject({ exit: 0 });
  }
});

test("what work brings along under a denied name, and under another, is started: a list is no boundary", async () => {
  copyFileSync("/usr/bin/find", join(ruled.workspace.tree, "find"));
  expect(await ruled.sh("./find . -maxdepth 0")).toMatchObject({ exit: 0 });
});

test("a program that is another name of what everything needs cannot be denied alone", async () => {
  const isolation = await bubblewrap();
  const rules = { executables: ["/usr/bin/rbash"], denied: [], readOnly: [] };
  await expect(enter(isolation, undefined, rules)).rejects.toMatchObject({ reason: "policy_unsupported" });
  const needed = { executables: ["sh", "/bin/bash"], denied: [], readOnly: [] };
  expect(await (await enter(isolation, undefined, needed)).sh("bash -c true")).toMatchObject({ exit: 0 });
});

test("a class that keeps nothing in keeps no rule", () => {
  expect(bare.keepsRules).toBe(false);
});
