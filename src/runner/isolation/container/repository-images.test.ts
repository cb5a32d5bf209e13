import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterAll, expect, test } from "@jest/globals";
import { WorkSchema } from "#gen/runner/v1/work_pb.js";
import { EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { realPrograms } from "../../../../test/harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../../../../test/harness/server.ts";
import type { Assignment } from "../../protocol/assignment.ts";
import { imageOfEnvironment } from "../../steps/environment-image.ts";
import { workspaceAt } from "../../steps/workspace.ts";
import type { ImageRequest } from "../isolation.ts";
import { imageChooser, type RepositoryImages } from "./repository-images.ts";

afterAll(stopAll);

/** Fakes the program that builds images: records its call and its input. */
const CLI = `#!/bin/sh
here=\${0%/*}
{ printf '%s\\n' "$@"; env; } >> "$here/call"
[ -d "$here/shared" ] && { mkdir "$here/shared/features" || exit 1; sleep 0.2; rmdir "$here/shared/features"; }
for each; do case $each in --workspace-folder=*) cp -r "\${each#*=}" "$here/given" ;; esac; done
[ -f "$here/broken" ] || exit 0
echo '[2026-01-01] Error: building at STEP "RUN x": exit status 7' >&2
echo '    at f (cli.js:1:1)' >&2
exit 1
`;
/** Fakes an engine that has the images named in its file. */
const ENGINE = `#!/bin/sh
for name; do :; done
grep -qxF "$name" "\${0%/*}/images" 2>/dev/null
`;

/** A repository with files, and functions that ask for its image. */
function repositoryWith(files: Readonly<Record<string, string>>) {
  const folder = temporaryFolder();
  const tools = temporaryFolder();
  const workspace = workspaceAt(folder, "00000000-0000-4000-8000-000000000001");
  const repository = join(workspace.tree, "app");
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(repository, path)), { recursive: true });
    writeFileSync(join(repository, path), text);
  };
  mkdirSync(repository, { recursive: true });
  for (const [path, text] of Object.entries(files)) write(path, text);
  writeFileSync(join(tools, "engine"), ENGINE, { mode: 0o755 });
  writeFileSync(join(tools, "devcontainer"), CLI, { mode: 0o755 });
  const environment = { PATH: realPrograms.path };
  const choosers = new Map<string, ReturnType<typeof imageChooser>>();
  const engine = { name: "podman", file: join(tools, "engine"), environment } as const;
  return {
    repository,
    tools,
    workspace,
    write,
    cli: join(tools, "devcontainer"),
    call: () => readFileSync(join(tools, "call"), "utf8").split("\n"),
    choose(images: Partial<RepositoryImages>, request: Partial<ImageRequest> = {}) {
      const key = JSON.stringify(images);
      const chooser =
        choosers.get(key) ??
        imageChooser(
          { allowed: [], cli: "", most: 1, ...images },
          { engine: { ...engine, isRootless: true, hasGroups: true }, programs: realPrograms },
        );
      choosers.set(key, chooser);
      return chooser({
        ...{ workspace, repository, devcontainerFile: "", organizationImage: "theirs", isNarrowed: false },
        signal: new AbortController().signal,
        ...request,
      });
    },
  };
}

const FILE = ".devcontainer/devcontainer.json";
const NAMED = `// What work needs.
{ "name": "x // no comment", "image": /* the team's */ "registry.example.org/team/tools:1", "mounts": ["source=/,target=/host"], }`;
/** A variable of the runner that the CLI replaces; a folder can have the same name. */
const HOME = `\${localEnv:HOME}`;
const DOCKERFILE = {
  [FILE]: '{"build": {"dockerfile": "Dockerfile", "context": ".."}}',
  ".devcontainer/Dockerfile": "FROM a",
};

test("work runs in the image that its repository names, where the operator allows that, and the organization's otherwise", async () => {
  const named = repositoryWith({ [FILE]: NAMED });
  expect(await named.choose({})).toBe("theirs");
  expect(await named.choose({ allowed: ["registry.example.org/team/*"] })).toBe(
    "registry.example.org/team/tools:1",
  );
  // A change of the file by work has no effect; an operator who no longer allows the image does.
  named.write(FILE, '{"image": "registry.example.org/team/other"}');
  expect(await named.choose({ allowed: ["*"] })).toBe("registry.example.org/team/tools:1");
  for (const allowed of [["registry.example.org/team/tools"], ["registry.example.org/team/tools:1.*"]])
    await expect(named.choose({ allowed })).rejects.toMatchObject({ reason: "image_refused" });
  const silent = repositoryWith({ ".devcontainer.json": '{"name": "x"}' });
  expect(await silent.choose({ allowed: ["*"] })).toBe("theirs");
  silent.write(".devcontainer.json", NAMED);
  expect(await silent.choose({ allowed: ["*"] })).toBe("theirs");
  const elsewhere = repositoryWith({ "tools/dev.json": '{"image": "b"}', [FILE]: '{"image": "a"}' });
  expect(await elsewhere.choose({ allowed: ["b"] }, { devcontainerFile: "tools/dev.json" })).toBe("b");
});

test.each([
  ["not json", "devcontainer_invalid"],
  ["[]", "devcontainer_invalid"],
  ['{"image": 1}', "devcontainer_invalid"],
  ['{"image": "--privileged"}', "devcontainer_invalid"],
  ['{"dockerComposeFile": "c.yaml", "service": "s"}', "devcontainer_invalid"],
  ['{"build": {"dockerfile": "../../Dockerfile"}}', "devcontainer_invalid"],
  ['{"build": {"dockerfile": "Dockerfile", "context": "../.."}}', "devcontainer_invalid"],
  ['{"build": {"dockerfile": "Dockerfile", "context": "/etc"}}', "devcontainer_invalid"],
  ['{"build": {"dockerfile": "Dockerfile", "context": "missing"}}', "devcontainer_invalid"],
  ['{"build": {"dockerfile": "Dockerfile", "options": ["--volume=/:/host"]}}', "devcontainer_invalid"],
  ['{"image": "a", "features": {"../../feature": {}}}', "devcontainer_invalid"],
  ['{"image": "dir:/etc", "features": {"./feature": {}}}', "devcontainer_invalid"],
  ['{"image": "a"} /* not ended', "devcontainer_invalid"],
  [`{"build": {"dockerfile": "Dockerfile", "context": "${HOME}"}}`, "devcontainer_invalid"],
  [`{"build": {"dockerfile": "${HOME}/Dockerfile"}}`, "devcontainer_invalid"],
  ['{"build": {"dockerfile": "Dockerfile", "context": "../out"}}', "path_refused"],
])("the devcontainer file %s is refused", async (text, reason) => {
  const place = repositoryWith({
    ...{ [FILE]: text, ".devcontainer/Dockerfile": "FROM a" },
    [`.devcontainer/${HOME}/Dockerfile`]: "FROM a",
  });
  symlinkSync("/etc", join(place.repository, "out"));
  await expect(place.choose({ allowed: ["*"], cli: place.cli })).rejects.toMatchObject({ reason });
  expect(existsSync(join(place.tools, "call"))).toBe(false);
});

test("a devcontainer file that is a link out of the repository is not read, and one that is too large neither", async () => {
  const secret = join(temporaryFolder(), "key");
  writeFileSync(secret, "the key");
  const place = repositoryWith({});
  symlinkSync(secret, join(place.repository, ".devcontainer.json"));
  await expect(place.choose({ allowed: ["*"] })).rejects.toMatchObject({ reason: "path_refused" });
  rmSync(join(place.repository, ".devcontainer.json"));
  const text = (size: number) => '{"image": "a"}'.padEnd(size);
  place.write(".devcontainer.json", text(256 * 1_024 + 1));
  await expect(place.choose({ allowed: ["*"] })).rejects.toMatchObject({ reason: "devcontainer_invalid" });
  place.write(".devcontainer.json", text(256 * 1_024));
  expect(await place.choose({ allowed: ["*"] })).toBe("a");
});

test("an image is built from a copy without links, by a program that sees nothing of the runner's, and once", async () => {
  const place = repositoryWith({ ...DOCKERFILE, "src/main": "x", ".git/config": "x" });
  symlinkSync("/etc/passwd", join(place.repository, "passwd"));
  process.env.CHARTROOM_TEST_SECRET = "s3cret";
  const image = await place.choose({ cli: place.cli });
  expect(image).toMatch(/^localhost\/chartroom-devcontainer:[0-9a-f]{64}$/);
  const [command, ...call] = place.call();
  expect(command).toBe("build");
  expect(call).toEqual(
    expect.arrayContaining([
      `--image-name=${image}`,
      `--docker-path=${join(place.tools, "engine")}`,
      "--buildkit=never",
      "--oci-auth-hardening",
    ]),
  );
  expect(call.join("\n")).not.toContain("s3cret");
  const given = join(place.tools, "given");
  expect(["src/main", "passwd", ".git"].map((each) => existsSync(join(given, each)))).toEqual([
    true,
    false,
    false,
  ]);
  expect(JSON.parse(readFileSync(join(given, FILE), "utf8"))).toEqual({
    build: { dockerfile: "Dockerfile", context: ".." },
  });
  // The copy is gone, and the answer does not change when work changes files.
  expect(existsSync(call.find((each) => each.startsWith("--workspace-folder="))?.slice(19) ?? "")).toBe(
    false,
  );
  rmSync(join(place.tools, "call"));
  place.write("src/main", "y");
  expect(await place.choose({ cli: place.cli })).toBe(image);
  // Another environment with the same files reuses the engine's image; other files give another image.
  const other = repositoryWith({ ...DOCKERFILE, "src/main": "x" });
  writeFileSync(join(other.tools, "images"), image);
  expect(await other.choose({ cli: other.cli })).toBe(image);
  expect([place, other].map(({ tools }) => existsSync(join(tools, "call")))).toEqual([false, false]);
  const changed = repositoryWith({ ...DOCKERFILE, "src/main": "y" });
  expect(await changed.choose({ cli: changed.cli })).not.toBe(image);
});

test("files of one repository that are built differently have images of their own", async () => {
  const file = (dockerfile: string) => `{"build":{"dockerfile":"${dockerfile}","context":".."}}`;
  const files = { "a/devcontainer.json": file("A"), "b/devcontainer.json": file("B"), "a/A": "", "b/B": "" };
  const [one, other] = [repositoryWith(files), repositoryWith(files)];
  expect(await one.choose({ cli: one.cli }, { devcontainerFile: "a/devcontainer.json" })).not.toBe(
    await other.choose({ cli: other.cli }, { devcontainerFile: "b/devcontainer.json" }),
  );
});

test("builds with features do not run at the same time, since they share a name in the engine", async () => {
  const shared = temporaryFolder();
  const files = (name: string) => ({
    [FILE]: '{"image": "base", "features": {"./own": {}}}',
    ".devcontainer/own/install.sh": name,
  });
  const places = ["a", "b"].map((name) => repositoryWith(files(name)));
  for (const { tools } of places) symlinkSync(shared, join(tools, "shared"));
  const images = await Promise.all(places.map((place) => place.choose({ cli: place.cli })));
  expect(new Set(images).size).toBe(2);
});

test("where nothing may be built, a repository names no image but those of the list", async () => {
  const place = repositoryWith({ [FILE]: NAMED });
  await expect(place.choose({ cli: place.cli }, { isNarrowed: true })).rejects.toMatchObject({
    reason: "image_refused",
  });
  const allowed = ["registry.example.org/team/*"];
  expect(await place.choose({ cli: place.cli, allowed }, { isNarrowed: true })).toMatch(/tools:1$/);
  const other = repositoryWith({ [FILE]: NAMED });
  expect(await other.choose({ cli: other.cli })).toMatch(/tools:1$/);
});

test("of work that begins at once in one environment the first has the image chosen, and the second if that fails", async () => {
  const place = repositoryWith(DOCKERFILE);
  const [one, other] = await Promise.all([
    place.choose({ cli: place.cli }),
    place.choose({ cli: place.cli }),
  ]);
  expect(other).toBe(one);
  expect(place.call().filter((each) => each === "build")).toEqual(["build"]);
  const stopped = repositoryWith(DOCKERFILE);
  const signal = AbortSignal.abort(new Error("stopped"));
  const [first, second] = await Promise.allSettled([
    stopped.choose({ cli: stopped.cli }, { signal }),
    stopped.choose({ cli: stopped.cli }),
  ]);
  expect([first, second]).toMatchObject([{ status: "rejected" }, { value: one }]);
  // Work that is stopped meanwhile does not wait for the other build.
  const waiting = repositoryWith(DOCKERFILE);
  const both = await Promise.allSettled([
    waiting.choose({ cli: waiting.cli }),
    waiting.choose({ cli: waiting.cli }, { signal }),
  ]);
  expect(both).toMatchObject([{ value: one }, { status: "rejected" }]);
});

test("what cannot be built says why", async () => {
  const place = repositoryWith(DOCKERFILE);
  await expect(place.choose({ allowed: ["*"] })).rejects.toMatchObject({
    reason: "devcontainer_cli_missing",
    message: expect.stringContaining("--isolation-devcontainer-cli"),
  });
  await expect(place.choose({ cli: "no-such-devcontainer" })).rejects.toMatchObject({
    reason: "devcontainer_cli_missing",
  });
  await expect(place.choose({ cli: place.cli }, { isNarrowed: true })).rejects.toMatchObject({
    reason: "policy_unsupported",
  });
  writeFileSync(join(place.tools, "broken"), "");
  await expect(place.choose({ cli: place.cli })).rejects.toMatchObject({
    reason: "image_build_failed",
    message:
      'the image of the devcontainer file could not be built: Error: building at STEP "RUN x": exit status 7',
  });
  const stopped = AbortSignal.abort(new Error("stopped"));
  await expect(place.choose({ cli: place.cli }, { signal: stopped })).rejects.toThrow("stopped");
  // Nothing was stored: the image is built once that is possible.
  rmSync(join(place.tools, "broken"));
  expect(await place.choose({ cli: place.cli })).toMatch(/^localhost/);
});

test("work of forks and under a policy about hosts has nothing built, and says where its file is", async () => {
  const { workspace } = repositoryWith({});
  const asked: ImageRequest[] = [];
  const imageOf = async (request: ImageRequest) => {
    asked.push(request);
    return "";
  };
  const ask = (egress: object | undefined, secretsWithheld?: boolean) => {
    const work = create(WorkSchema, {
      policies: { defaultEnvironmentImage: "theirs", ...(egress && { egress }) },
    });
    const environment = create(EnvironmentSchema, {
      metadata: { ...(secretsWithheld !== undefined && { secretsWithheld }) },
      spec: { devcontainer: { devcontainerFilePath: "dev.json" }, workflowActionId: "action" },
    });
    const assignment = { work, tools: { isolation: { imageOf } } } as unknown as Assignment;
    const place = { workspace, checkouts: [{ location: "app", remoteUri: "x" }] };
    return imageOfEnvironment(assignment, environment, place, new AbortController().signal);
  };
  await ask(undefined, false);
  await ask({}, false);
  await ask(undefined, true);
  // An earlier release made it like this.
  await ask(undefined);
  expect(asked.map(({ isNarrowed }) => isNarrowed)).toEqual([false, true, true, true]);
  expect(asked[0]).toMatchObject({
    ...{ repository: join(workspace.tree, "app"), devcontainerFile: "dev.json", organizationImage: "theirs" },
  });
});
