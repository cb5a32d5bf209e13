import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "@jest/globals";
import type { Checkout } from "../../src/runner/git/git-checkout.ts";
import type { Programs } from "../../src/runner/process/command.ts";
import {
  createWorkspace,
  readCheckouts,
  removeWorkspace,
  workspaceAt,
} from "../../src/runner/steps/workspace.ts";
import { endNodes, startNode } from "../harness/node-process.ts";
import { realPrograms } from "../harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

afterEach(endNodes);
afterAll(stopAll);

const ID = "0190a000-0000-7000-8000-000000000001";
const OTHER = "0190a000-0000-7000-8000-000000000002";
const CHECKOUTS: readonly Checkout[] = [
  { location: "r", remoteUri: "https://git.example.org/r", commit: "c" },
];

describe("a workspace", () => {
  test("is a tree and a home of its own, complete when it is filled", async () => {
    const workspace = workspaceAt(temporaryFolder(), ID);
    expect(await readCheckouts(workspace)).toBeUndefined();
    const made = await createWorkspace(realPrograms, workspace, async ({ tree, home }) => {
      expect([readdirSync(tree), readdirSync(home)]).toEqual([[], []]);
      expect(await readCheckouts(workspace)).toBeUndefined();
      writeFileSync(join(tree, "file"), "x");
      return CHECKOUTS;
    });
    expect([made, await readCheckouts(workspace)]).toEqual([CHECKOUTS, CHECKOUTS]);
    expect(lstatSync(workspace.folder).mode & 0o777).toBe(0o700);
  });

  test("is made, or removed, once an earlier attempt at it has ended", async () => {
    const root = temporaryFolder();
    const workspace = workspaceAt(root, ID);
    const file = join(workspace.tree, "file");
    const lost = Promise.withResolvers<never>();
    const filling = Promise.withResolvers<void>();
    const earlier = createWorkspace(realPrograms, workspace, async () => {
      writeFileSync(file, "earlier");
      filling.resolve();
      return lost.promise;
    });
    await filling.promise;
    const later = createWorkspace(realPrograms, workspace, async () => {
      writeFileSync(file, "later");
      return CHECKOUTS;
    });
    // As long as the later one takes where it does not wait.
    await createWorkspace(realPrograms, workspaceAt(root, OTHER), async () => []);
    expect(readFileSync(file, "utf8")).toBe("earlier");
    lost.reject(new Error("the lease is lost"));
    await expect(earlier).rejects.toThrow("the lease is lost");
    await later;
    expect([await readCheckouts(workspace), readFileSync(file, "utf8")]).toEqual([CHECKOUTS, "later"]);
    const again = createWorkspace(realPrograms, workspace, async () => CHECKOUTS);
    await removeWorkspace(realPrograms, workspace);
    await again;
    expect(existsSync(workspace.folder)).toBe(false);
  });

  test("is not there when it could not be filled", async () => {
    const workspace = workspaceAt(temporaryFolder(), ID);
    const making = createWorkspace(realPrograms, workspace, async ({ tree }) => {
      writeFileSync(join(tree, "file"), "x");
      throw new Error("no such repository");
    });
    await expect(making).rejects.toThrow("no such repository");
    expect(existsSync(workspace.folder)).toBe(false);
  });

  test("of a runner that was killed while it made it is known as half made, and made again", async () => {
    const root = temporaryFolder();
    const maker = startNode(
      `
      import { writeFileSync } from "node:fs";
      import { createCommandRunner } from "./src/runner/process/command.ts";
      import { createWorkspace, workspaceAt } from "./src/runner/steps/workspace.ts";
      const [, root, id] = process.argv;
      const programs = { run: createCommandRunner((group, signal) => process.kill(-group, signal)), path: process.env.PATH };
      createWorkspace(programs, workspaceAt(root, id), async ({ tree }) => {
        writeFileSync(tree + "/half", "x");
        print("half");
        await nextLine();
      });
      `,
      root,
      ID,
    );
    await maker.next();
    await maker.kill();
    const workspace = workspaceAt(root, ID);
    expect(readdirSync(workspace.tree)).toEqual(["half"]);
    expect(await readCheckouts(workspace)).toBeUndefined();
    await createWorkspace(realPrograms, workspace, async () => CHECKOUTS);
    expect(readdirSync(workspace.tree)).toEqual([]);
    expect(await readCheckouts(workspace)).toEqual(CHECKOUTS);
  });

  test.each(["", ".", "..", "../x", `${ID}/..`, ID.toUpperCase(), `${ID}\n`, "x"])(
    "has no place for the id %j",
    (id) => {
      expect(() => workspaceAt("/srv", id)).toThrow("no id of a workspace");
    },
  );
});

/** Programs without one of them, as on a machine that has another kind of it. */
const without = (missing: string): Programs => ({
  ...realPrograms,
  run: (command) =>
    realPrograms.run(command.program === missing ? { ...command, program: "not-there" } : command),
});

describe.each([
  ["by a program", realPrograms],
  ["where cp is of another kind", without("cp")],
  ["where find is of another kind", without("find")],
])("a workspace that starts as a copy, %s", (_, programs) => {
  test("has the same files, modes, times and links, and is another one", async () => {
    const root = temporaryFolder();
    const from = workspaceAt(root, ID);
    await createWorkspace(realPrograms, from, async ({ tree, home }) => {
      mkdirSync(join(tree, "r/.git"), { recursive: true });
      writeFileSync(join(tree, "r/run"), "#!/bin/sh\n", { mode: 0o755 });
      writeFileSync(join(tree, "r/fixed"), "x", { mode: 0o444 });
      utimesSync(join(tree, "r/fixed"), 1_000, 2_000);
      symlinkSync("run", join(tree, "r/relative"));
      symlinkSync("/absent", join(tree, "r/dangling"));
      mkdirSync(join(tree, "closed"));
      writeFileSync(join(tree, "closed/file"), "x");
      chmodSync(join(tree, "closed"), 0o555);
      writeFileSync(join(home, ".cache"), "warm");
      execFileSync("mkfifo", [join(tree, "r/pipe")]);
      return CHECKOUTS;
    });
    const copy = workspaceAt(root, OTHER);
    await createWorkspace(
      programs,
      copy,
      async ({ tree }) => {
        expect(readdirSync(join(tree, "r")).sort()).toEqual([".git", "dangling", "fixed", "relative", "run"]);
        return [];
      },
      from,
    );
    const stat = (name: string) => lstatSync(join(copy.tree, name));
    expect([stat("r/run").mode & 0o777, stat("r/fixed").mode & 0o777, stat("closed").mode & 0o777]).toEqual([
      0o755, 0o444, 0o555,
    ]);
    expect(stat("r/fixed").mtimeMs).toBe(2_000_000);
    expect(["r/relative", "r/dangling"].map((name) => readlinkSync(join(copy.tree, name)))).toEqual([
      "run",
      "/absent",
    ]);
    expect(readFileSync(join(copy.home, ".cache"), "utf8")).toBe("warm");
    writeFileSync(join(copy.tree, "r/run"), "changed");
    expect(readFileSync(join(from.tree, "r/run"), "utf8")).toBe("#!/bin/sh\n");
    expect([await readCheckouts(from), await readCheckouts(copy)]).toEqual([CHECKOUTS, []]);
  });
});

describe("a workspace that is removed", () => {
  test("is gone, and to remove it again is nothing", async () => {
    const workspace = workspaceAt(temporaryFolder(), ID);
    await createWorkspace(realPrograms, workspace, async () => CHECKOUTS);
    await removeWorkspace(realPrograms, workspace);
    await removeWorkspace(realPrograms, workspace);
    expect(existsSync(workspace.folder)).toBe(false);
  });

  test("does not take along what its links lead to", async () => {
    const outside = temporaryFolder();
    writeFileSync(join(outside, "file"), "x", { mode: 0o400 });
    chmodSync(outside, 0o555);
    const workspace = workspaceAt(temporaryFolder(), ID);
    await createWorkspace(realPrograms, workspace, async ({ tree }) => {
      symlinkSync(outside, join(tree, "link"));
      return CHECKOUTS;
    });
    await removeWorkspace(realPrograms, workspace);
    expect(readdirSync(outside)).toEqual(["file"]);
    expect(lstatSync(outside).mode & 0o777).toBe(0o555);
  });

  test("is gone also when its path is longer than the system takes at once", async () => {
    const workspace = workspaceAt(temporaryFolder(), ID);
    await createWorkspace(realPrograms, workspace, async ({ tree }) => {
      const dive = "for (let i = 0; i < 50; i++) { fs.mkdirSync(name); process.chdir(name); }";
      execFileSync(process.execPath, ["-e", `const name = "a".repeat(100); ${dive}`], { cwd: tree });
      return CHECKOUTS;
    });
    await removeWorkspace(realPrograms, workspace);
    expect(existsSync(workspace.folder)).toBe(false);
  });

  // The tests' own user is either root, whom no mode keeps out, or no root.
  const asAnother = process.getuid?.() === 0 ? test : test.skip; // Only root can start a process as another user.
  asAnother("is gone also when its commands made it read-only", async () => {
    const NOBODY = 65_534;
    const folder = temporaryFolder();
    const tree = join(folder, ID, "tree");
    mkdirSync(join(tree, "closed/deep"), { recursive: true });
    writeFileSync(join(tree, "closed/deep/file"), "x", { mode: 0o400 });
    chmodSync(folder, 0o777);
    execFileSync("chown", ["-R", `${NOBODY}:${NOBODY}`, join(folder, ID)]);
    for (const name of ["closed/deep", "closed", ""]) chmodSync(join(tree, name), 0o500);
    const child = spawn(
      process.execPath,
      [
        "--input-type=module",
        "-e",
        `
        import { createCommandRunner } from "./src/runner/process/command.ts";
        import { removeWorkspace, workspaceAt } from "./src/runner/steps/workspace.ts";
        const [, root, id] = process.argv;
        const programs = { run: createCommandRunner((group, signal) => process.kill(-group, signal)), path: process.env.PATH };
        await removeWorkspace(programs, workspaceAt(root, id));
        `,
        folder,
        ID,
      ],
      {
        cwd: join(import.meta.dirname, "../.."),
        uid: NOBODY,
        gid: NOBODY,
        stdio: ["ignore", "inherit", "pipe"],
      },
    );
    let complaints = "";
    child.stderr.on("data", (text) => {
      complaints += text;
    });
    await once(child, "close");
    expect([child.exitCode, complaints.replace(/.*ExperimentalWarning.*\n.*\n/, "")]).toEqual([0, ""]);
    expect(readdirSync(folder)).toEqual([]);
  });
});
