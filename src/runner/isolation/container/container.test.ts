import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { realPrograms } from "../../../../test/harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../../../../test/harness/server.ts";
import { until } from "../../../../test/harness/until.ts";
import { commandEnvironment } from "../../process/command.ts";
import { readProcessStat } from "../../process/process-group.ts";
import { workspaceAt } from "../../steps/workspace.ts";
import type { EntryOptions } from "../isolation.ts";
import type { WorkGroups } from "../work-groups.ts";
import { createContainers } from "./container.ts";
import { type ContainerParts, commandArguments, confinement, type Engine } from "./container-arguments.ts";

afterAll(stopAll);

const ID = "00000000-0000-4000-8000-000000000001";

/** Fakes an engine: records its calls, and runs a command's script without a container. */
const STAND_IN = `#!/bin/sh
here=\${0%/*}
{ printf '%s\\n' "$*"; env | sed 's/^/  /'; } >> "$here/calls"
case $1 in
kill|rm) for name; do :; done; [ -f "$here/$name" ] && kill "$(cat "$here/$name")"; exit 0 ;;
ps|pull) exit 0 ;;
image) exit 1 ;;
esac
for each; do
  case $each in
  --name=*) name=\${each#--name=} ;;
  --mount=*target=/run/chartroom) folder=\${each#*source=}; folder=\${folder%%,*} ;;
  --workdir=*) cd "\${each#--workdir=}" || exit 125 ;;
  --entrypoint=/run/node) echo $$ > "$here/fetching"; exec sleep 1000 ;;
  esac
done
echo $$ > "$here/$name"
[ -f "$here/broken" ] && { echo "no such image" >&2; exit 125; }
sed "s#/run/chartroom#$folder#" "$folder/command" > "$here/script-$name"
exec /bin/sh "$here/script-$name"
`;

const limits = {
  processes: 50,
  memoryBytes: 2 ** 40,
  processors: 2,
  diskBytes: 2 ** 50,
  tmpBytes: 2 ** 50,
  freeDiskBytes: 0,
};

async function enter(options: EntryOptions = {}, groups?: WorkGroups) {
  const folder = temporaryFolder();
  const file = join(folder, "podman");
  writeFileSync(file, STAND_IN, { mode: 0o755 });
  const isolation = createContainers({
    engine: {
      name: "podman",
      file,
      isRootless: true,
      hasGroups: true,
      environment: { PATH: realPrograms.path },
    },
    image: "base",
    groups,
    repositoryImages: { allowed: [], cli: "", most: 1 },
    filterFile: "/filter.json",
    view: { readable: [] },
    limits,
    user: undefined,
    programs: realPrograms,
    signalGroup: (groupId, signal) => void process.kill(-groupId, signal),
  });
  const workspace = workspaceAt(temporaryFolder(), ID);
  const left = join(workspace.folder, "commands-of-a-killed-runner");
  for (const each of [workspace.tree, workspace.home, left]) mkdirSync(each, { recursive: true });
  const run = await isolation.enter(workspace, [], options);
  let text = "";
  return {
    folder,
    workspace,
    calls: () => (existsSync(join(folder, "calls")) ? readFileSync(join(folder, "calls"), "utf8") : ""),
    output: () => text,
    run: (program: string, args: readonly string[], more: object = {}, variables = {}) =>
      run({
        program,
        args,
        folder: workspace.tree,
        environment: commandEnvironment(realPrograms, workspace.home, variables),
        onOutput: (bytes) => {
          text += bytes;
        },
        ...more,
      }),
  };
}

test("a command has its variables and arguments, of which the engine and its arguments show none", async () => {
  const place = await enter();
  const value = 'it\'s\n"$HOME"';
  const result = await place.run(
    "sh",
    ["-c", 'printf %s "$SECRET|$1"; exit 3', "sh", value],
    {},
    { SECRET: value },
  );
  expect([result.exit, place.output()]).toEqual([3, `${value}|${value}`]);
  expect(place.calls()).toContain(
    `--workdir=${place.workspace.tree} --entrypoint=/bin/sh base /run/chartroom/command`,
  );
  expect(place.calls()).not.toMatch(/it's|SECRET/);
  // The command's folder is gone, and so are the remains of a killed runner.
  const [folder = "", ...others] = readdirSync(place.workspace.folder).filter((name) =>
    name.startsWith("command"),
  );
  expect([others, readdirSync(join(place.workspace.folder, folder))]).toEqual([[], []]);
});

test("work runs in the image that its organization names", async () => {
  const image = `registry.example.org:5000/their_team/tools:2@sha256:${"0".repeat(64)}`;
  const place = await enter({ image });
  await place.run("true", []);
  expect(place.calls()).toContain(` ${image} /run/chartroom/command`);
});

test.each(["--help", "-v=/:/host", "a b", "docker.io/..@", "/etc", "dir:/etc", "oci:etc", "a:b:c", "a\n"])(
  "no engine is asked for an image of the name %j",
  async (image) => {
    await expect(enter({ image })).rejects.toMatchObject({ reason: "policy_unsupported" });
  },
);

test("a command that is stopped while an image is fetched does not wait for that", async () => {
  const work = new AbortController();
  const network = {
    ...{ socketFile: "/srv/socket", loopbackService: undefined, ended: work.signal },
    takeRefusals: () => [],
  };
  const place = await enter({ network });
  const stop = new AbortController();
  const running = place.run("true", [], { signal: stop.signal });
  const file = join(place.folder, "fetching");
  const id = await until(
    () => (existsSync(file) ? readFileSync(file, "utf8").trim() : ""),
    (text) => text !== "",
  );
  stop.abort();
  expect(await running).toMatchObject({ stopped: true });
  // The fetch ends with the work.
  expect(await readProcessStat(id)).toBeDefined();
  work.abort();
  await until(
    () => readProcessStat(id),
    (stat) => stat === undefined,
  );
});

test("the network of work runs in the operator's image, whatever image the work has", async () => {
  const work = new AbortController();
  const network = {
    ...{ socketFile: "/srv/socket", loopbackService: undefined, ended: work.signal },
    takeRefusals: () => [],
  };
  const place = await enter({ network, image: "registry.example.org/theirs" });
  const calls = await until(place.calls, (text) => /--entrypoint=\/run\/node \S+ /.test(text));
  expect(calls).toContain(" --entrypoint=/run/node base ");
  await until(place.calls, (text) => text.includes("pull --quiet registry.example.org/theirs\n"));
  work.abort();
});

test("podman is started in the group of the work, and leaves it with the command", async () => {
  const uses: string[] = [];
  const close = () => uses.push("left");
  const use = (folder: string) => {
    uses.push(folder);
    return { prefix: ["/usr/bin/env", "JOINED=1"], close };
  };
  const place = await enter({}, { folder: "/groups", use });
  await place.run("true", []);
  expect(uses).toEqual([place.workspace.folder, "left"]);
  expect(place.calls()).toContain("\n  JOINED=1\n");
  writeFileSync(join(place.folder, "broken"), "");
  await expect(place.run("true", [])).rejects.toMatchObject({ reason: "command_not_started" });
  expect(uses).toHaveLength(4);
});

test("a command is not started without its program, or without a container", async () => {
  const place = await enter();
  await expect(place.run("no-such-program", [])).rejects.toMatchObject({ reason: "command_not_started" });
  // The same exit code from the program itself is not an engine failure.
  expect(await place.run("sh", ["-c", "exit 127"])).toMatchObject({ exit: 127 });
  writeFileSync(join(place.folder, "broken"), "");
  await expect(place.run("true", [])).rejects.toMatchObject({ reason: "command_not_started" });
});

test("a command that is stopped is asked by the engine, and its container ends", async () => {
  const place = await enter();
  const stop = new AbortController();
  const running = place.run("sh", ["-c", "echo up; exec sleep 1000"], { signal: stop.signal });
  await until(place.output, (text) => text.includes("up"));
  stop.abort();
  expect(await running).toMatchObject({ stopped: true });
  expect(place.calls()).toMatch(/^kill --signal=TERM chartroom-/m);
});

const PARTS: Omit<ContainerParts, "engine"> = {
  image: "base",
  view: { readable: [] },
  workspace: workspaceAt("/srv", ID),
  tmp: "/srv/work/tmp",
  readable: ["/srv/a,b"],
  limits,
  user: "64913:64913",
  filterFile: "/filter.json",
  runner: "r",
};
const engineOf = (name: Engine["name"], isRootless: boolean, hasGroups = true): Engine => ({
  ...{ name, isRootless, hasGroups },
  file: `/usr/bin/${name}`,
  environment: {},
});

test.each([
  [
    "podman of root",
    engineOf("podman", false),
    ["--user=64913:64913", "--pids-limit=50", "--uts=private", "--image-volume=ignore"],
    ["--userns=keep-id"],
  ],
  ["podman of a user", engineOf("podman", true), ["--user=64913:64913", "--userns=keep-id"], ["--user=0:0"]],
  ["podman without groups", engineOf("podman", true, false), ["--cgroups=disabled"], ["--memory="]],
  ["docker without groups", engineOf("docker", true, false), ["--user=0:0"], ["--cgroups", "--memory="]],
  // It does not accept these as arguments: its namespaces are private by default.
  ["docker of root", engineOf("docker", false), ["--user=64913:64913", "--cpus=2"], ["--uts", "--cgroupns"]],
  ["docker of a user", engineOf("docker", true), ["--user=0:0"], ["--user=64913:64913"]],
])("%s keeps a container in", (_, engine, has, hasNot) => {
  const words = confinement({ ...PARTS, engine });
  const always = [
    "--cap-drop=all",
    "--security-opt=no-new-privileges",
    "--security-opt=seccomp=/filter.json",
    "--read-only",
    "--no-healthcheck",
  ];
  expect(words).toEqual(
    expect.arrayContaining([...always, ...has, "--ulimit=nproc=50:50", "--ulimit=core=0:0"]),
  );
  for (const word of hasNot) expect(words.filter((each) => each.startsWith(word))).toEqual([]);
});

test("a container sees its workspace, its /tmp and what is named, and no network but that of its work", () => {
  const parts = { ...PARTS, engine: engineOf("podman", true) };
  const place = { name: "n", commandFolder: "/srv/work/command-1" };
  const command = { folder: "/srv/work/tree", input: undefined };
  const words = commandArguments(parts, command, { ...place, network: undefined });
  const { tree, home } = PARTS.workspace;
  expect(words.filter((each) => each.startsWith("--mount"))).toEqual([
    "--mount=type=bind,source=/srv/work/tmp,target=/tmp",
    "--mount=type=bind,source=/srv/work/tmp,target=/var/tmp",
    '--mount=type=bind,"source=/srv/a,b","target=/srv/a,b",readonly',
    `--mount=type=bind,source=${tree},target=${tree}`,
    `--mount=type=bind,source=${home},target=${home}`,
    "--mount=type=bind,source=/srv/work/command-1,target=/run/chartroom",
  ]);
  expect(words).toContain("--network=none");
  expect(commandArguments(parts, command, { ...place, network: "other" })).toContain(
    "--network=container:other",
  );
});

/** The system calls that the bubblewrap filter always denies, whatever their arguments. */
test("the filter of containers refuses the system calls that the one of sandboxes does", () => {
  const root = join(import.meta.dirname, "../../../..");
  const source = readFileSync(join(root, "scripts/seccomp/filter.c"), "utf8").replace(
    /\/\*[\s\S]*?\*\//g,
    "",
  );
  const [, list = ""] = /REFUSED\[\] = \{([\s\S]*?)\};/.exec(source) ?? [];
  const names = [...list.matchAll(/"(\w+)"/g)].map(([, name]) => name);
  const profile = JSON.parse(readFileSync(join(import.meta.dirname, "../seccomp/containers.json"), "utf8"));
  expect(names.length).toBeGreaterThan(50);
  expect(profile.syscalls[0]).toEqual({ names, action: "SCMP_ACT_ERRNO", errnoRet: 1 });
  const called = (name: string) =>
    profile.syscalls.filter(({ names: [one] }: { names: string[] }) => one === name).length;
  expect(["clone", "unshare", "ptrace", "ioctl", "socket", "clone3"].map(called)).toEqual([
    7, 8, 2, 2, 13, 1,
  ]);
});
