import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import packageJson from "../../package.json" with { type: "json" };
import { post } from "../harness/call.ts";
import { ROOT, runProgram, terminalEnvironment } from "../harness/program.ts";
import { temporaryFolder } from "../harness/server.ts";

const TITLE = `chartroom-${packageJson.version}-${process.platform}-${process.arch}`;
const made = temporaryFolder();
const unpacked = temporaryFolder();
const release = join(unpacked, TITLE);
let printed = "";

beforeAll(async () => {
  const args = ["scripts/release.ts", "--allow-changes", "--to", made, "--without", "java"];
  const env = { ...terminalEnvironment(), PATH: folderOf(["env", "git", "gzip", "npm", "sh", "tar"]) };
  const { code, stdout, stderr } = await runProgram(process.execPath, args, { env, timeMs: 600_000 });
  if (code !== 0) throw new Error(stdout + stderr);
  printed = stdout;
  execFileSync("tar", ["-xzf", join(made, `${TITLE}.tar.gz`), "-C", unpacked]);
});

/** Returns a folder with these programs of the machine, and the repository's Node, but no tools of other languages. */
function folderOf(programs: readonly string[]): string {
  const folder = temporaryFolder();
  symlinkSync(process.execPath, join(folder, "node"));
  for (const name of programs) symlinkSync(pathOf(name), join(folder, name));
  return folder;
}

function pathOf(program: string): string {
  return execFileSync("sh", ["-c", `command -v ${program}`], { encoding: "utf8" }).trim();
}

describe("the files of a release", () => {
  test("are the archive, the list of what is in it, where it comes from, and packs, each with its checksum", () => {
    const { version } = packageJson;
    const packs = [`api-${version}.tgz`, `client-${version}.tgz`, `protos-${version}.tar.gz`];
    const files = [
      ...["cdx.json", "provenance.json", "tar.gz"].map((end) => `${TITLE}.${end}`),
      ...packs.map((pack) => `chartroom-${pack}`),
    ].sort();
    expect(readdirSync(made).sort()).toEqual(["SHA256SUMS", ...files]);
    expect(execFileSync("sha256sum", ["--check", "SHA256SUMS"], { cwd: made, encoding: "utf8" })).toBe(
      files.map((file) => `${file}: OK\n`).join(""),
    );
    expect(printed).toMatch(/^\d+ packages; unpacked \d+ MiB, packed \d+ MiB$/m);
    for (const file of files) expect(printed).toMatch(new RegExp(`^ +\\d+ KiB {2}${file}$`, "m"));
  });

  test("lack packs for which there are no tools, and those that are not wanted, which it says", () => {
    expect(printed.match(/^ {2}without .*$/gm)).toEqual([
      "  without the Python package: there is no python3 on the PATH",
      "  without the Go module: there is no go on the PATH",
      "  without the Maven module: --without java",
    ]);
  });

  test("name every package that is in the archive, and no other", () => {
    const { bomFormat, components } = JSON.parse(readFileSync(join(made, `${TITLE}.cdx.json`), "utf8"));
    const locked = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")).packages;
    const inArchive = Object.keys(locked).filter((path) => {
      try {
        return path !== "" && readFileSync(join(release, path, "package.json")) !== undefined;
      } catch {
        return false;
      }
    });
    const nameOf = (path: string) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    // Node is a package of the lock file, and lies in a folder of its own.
    const expected = [...inArchive.map(nameOf), `node-${process.platform}-${process.arch}`];
    const listed = components.map((each: { group?: string; name: string }) =>
      each.group ? `${each.group}/${each.name}` : each.name,
    );
    expect(bomFormat).toBe("CycloneDX");
    expect([...new Set(listed)].sort()).toEqual([...new Set(expected)].sort());
  });

  test("say from which commit and packages they are", () => {
    const provenance = JSON.parse(readFileSync(join(made, `${TITLE}.provenance.json`), "utf8"));
    const commit = execFileSync("git", ["rev-parse", "HEAD"], { cwd: ROOT, encoding: "utf8" }).trim();
    expect(provenance).toMatchObject({ version: packageJson.version, commit, node: process.version });
  });

  test("hold no test, nothing for compilers, and no other platform's binaries", () => {
    const files = readdirSync(release, { recursive: true, encoding: "utf8" });
    expect(files.filter((file) => /\.test\.ts$|^test\/|^\.git\b/.test(file))).toEqual([]);
    expect(files.filter((file) => file.endsWith(".node"))).toEqual([
      `node_modules/better-sqlite3/prebuilds/${process.platform}-${process.arch}.node`,
    ]);
  });
});

describe("on a machine with the C and C++ runtime libraries, and nothing else", () => {
  const state = temporaryFolder();
  const bwrap: ChildProcess[] = [];
  afterAll(async () => {
    for (const child of bwrap) {
      if (child.exitCode === null && child.kill("SIGKILL")) await once(child, "exit");
    }
  });

  /** Runs Chartroom there by the release's own Node. */
  function start(...args: readonly string[]) {
    const libraries = [...sharedLibraries()].flatMap((file) => ["--ro-bind", file, file]);
    const child = spawn(
      "bwrap",
      [
        ...["--unshare-all", "--share-net", "--die-with-parent", "--clearenv", "--setenv", "HOME", "/root"],
        ...["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", ...libraries],
        ...["--ro-bind", release, "/opt/chartroom", "--bind", state, "/root", "--chdir", "/"],
        ...["--uid", "0", "--gid", "0", "--setenv", "CHARTROOM_METRICS_ADDRESS", "none"],
        ...["/opt/chartroom/node/bin/node", "/opt/chartroom/bin/chartroom.js", ...args],
      ],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    bwrap.push(child);
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    const ended = once(child, "close").then(([code]) => code as number | null);
    return { child, ended, output: () => output };
  }

  test("the server makes its data in the state folder, answers, and starts again", async () => {
    const first = start("serve", "--port", "0");
    const said = async (pattern: RegExp) => {
      for (;;) {
        const found = pattern.exec(first.output());
        if (found) return found[1] as string;
        const { child, ended } = first;
        const next = once(child.stdout, "data");
        if ((await Promise.race([next, ended.then(() => "ended")])) === "ended")
          throw new Error(first.output());
      }
    };
    const url = await said(/^Chartroom is ready at (\S+)$/m);
    const token = await said(/^ {2}(cr_pat_\w+)$/m);
    const spec = { git: { remoteUri: "https://git.example.org/team/hello.git" } };
    const created = await post({ url, token }, "ProjectService/CreateProject", {
      initializer: { specs: [spec] },
    });
    expect(created.status).toBe(200);
    expect(await (await fetch(`${url}/version`)).json()).toMatchObject({ version: packageJson.version });
    // The console is there, built.
    expect(await (await fetch(`${url}/account`, { redirect: "manual" })).status).toBe(302);
    first.child.kill("SIGTERM");
    await first.ended;
    expect(first.output()).toMatch(
      new RegExp(`^\\{.*"version":"${packageJson.version}".*"msg":"listening"\\}$`, "m"),
    );
    expect(readdirSync(join(state, ".local/state/chartroom/data"))).toContain("key.json");

    const verified = start("audit", "verify");
    expect([await verified.ended, verified.output()]).toEqual([
      0,
      expect.stringContaining("every chain holds"),
    ]);
  });
});

describe("the program of a release", () => {
  test("runs by a link too, from any folder", async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, "bin"));
    symlinkSync(join(release, "bin/chartroom"), join(folder, "bin/chartroom"));
    const { code, stdout } = await runProgram(join(folder, "bin/chartroom"), ["--version"], {
      cwd: folder,
      env: { PATH: "/usr/bin:/bin" },
    });
    expect([code, stdout]).toEqual([
      0,
      `chartroom ${packageJson.version} on Node ${process.versions.node}\n`,
    ]);
  });
});

/** The libraries that Node and the database's engine are linked with, and what loads them. */
function sharedLibraries(): ReadonlySet<string> {
  const programs = [
    join(release, "node/bin/node"),
    join(release, `node_modules/better-sqlite3/prebuilds/${process.platform}-${process.arch}.node`),
  ];
  const found = programs.flatMap((program) => {
    const listed = execFileSync("ldd", [program], { encoding: "utf8" });
    return [...listed.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path as string);
  });
  return new Set(found);
}
