import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { realPrograms } from "../../../../test/harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../../../../test/harness/server.ts";
import { workspaceAt } from "../../steps/workspace.ts";
import { BuiltImages } from "./built-images.ts";
import type { Engine } from "./container-arguments.ts";
import { imageChooser } from "./repository-images.ts";

afterAll(stopAll);

/** Fakes an engine that has the images listed in its file and does not remove those used by a container. */
const ENGINE = `#!/bin/sh
here=\${0%/*}
for last; do :; done
echo "$*" >> "$here/calls"
case "$2" in
inspect) grep -qxF "$last" "$here/images" ;;
ls) [ "$last" = localhost/chartroom-devcontainer ] && cat "$here/images" ;;
rm)
  grep -qxF "$last" "$here/busy" && { echo "image is in use by a container" >&2; exit 2; }
  grep -vxF "$last" "$here/images" > "$here/left"; mv "$here/left" "$here/images" ;;
*) exit 125 ;;
esac
`;
/** Fakes the program that builds; afterwards the engine has the image. */
const CLI = `#!/bin/sh
here=\${0%/*}
[ -f "$here/broken" ] && exit 1
for each; do case $each in --image-name=*) echo "\${each#*=}" >> "$here/images" ;; esac; done
`;
/** An image built by an earlier release, which kept no record. */
const EARLIER = `localhost/chartroom-devcontainer:${"0".repeat(64)}`;

function machine({ most = 2, images = "" }: { readonly most?: number; readonly images?: string } = {}) {
  const tools = temporaryFolder();
  const places = temporaryFolder();
  const folder = join(temporaryFolder(), "isolation");
  writeFileSync(join(tools, "engine"), ENGINE, { mode: 0o755 });
  writeFileSync(join(tools, "devcontainer"), CLI, { mode: 0o755 });
  writeFileSync(join(tools, "images"), images);
  writeFileSync(join(tools, "busy"), "");
  const engine: Engine = {
    ...{ name: "podman", file: join(tools, "engine"), isRootless: true, hasGroups: true },
    environment: { PATH: realPrograms.path },
  };
  /** Returns the runner's function as it is after a start. */
  const start = () =>
    imageChooser(
      { allowed: [], cli: join(tools, "devcontainer"), most },
      { engine, programs: realPrograms, built: new BuiltImages({ engine, folder, most }) },
    );
  let count = 0;
  let choose = start();
  return {
    tools,
    images: () => readFileSync(join(tools, "images"), "utf8").split("\n").filter(Boolean),
    calls: () => readFileSync(join(tools, "calls"), "utf8"),
    restart() {
      choose = start();
    },
    /** Makes an environment whose repository has this text in its Dockerfile. */
    environment(text: string) {
      const workspace = workspaceAt(places, `00000000-0000-4000-8000-${String(++count).padStart(12, "0")}`);
      const repository = join(workspace.tree, "app");
      mkdirSync(repository, { recursive: true });
      writeFileSync(join(repository, ".devcontainer.json"), '{"build": {"dockerfile": "Dockerfile"}}');
      writeFileSync(join(repository, "Dockerfile"), text);
      const facts = { devcontainerFile: "", organizationImage: "theirs", isNarrowed: false };
      return {
        use: () => choose({ workspace, repository, ...facts, signal: new AbortController().signal }),
        remove: () => rmSync(workspace.folder, { recursive: true }),
      };
    },
  };
}

test("of the images that no environment has, those go that were used least recently", async () => {
  const { environment, images, restart } = machine({ most: 2 });
  const [one, two] = [environment("one"), environment("two")];
  const [first, second] = [await one.use(), await two.use()];
  // The image is reused, also after the runner restarts.
  restart();
  expect(await one.use()).toBe(first);
  one.remove();
  two.remove();
  const third = await environment("three").use();
  expect(images()).toEqual([first, third]);
  // A removed image is built again.
  expect(await environment("two").use()).toBe(second);
  expect(images().toSorted()).toEqual([third, second].toSorted());
});

test("no image goes that an environment has, however many there are", async () => {
  const { environment, images } = machine({ most: 1 });
  const all = ["one", "two", "three"].map(environment);
  const built: string[] = [];
  for (const each of all) built.push(await each.use());
  expect(images()).toEqual(built);
  all[1]?.remove();
  const fourth = await environment("four").use();
  expect(images()).toEqual([built[0], built[2], fourth]);
});

test("no image goes that is being chosen, nor one that the engine keeps for a container", async () => {
  const { environment, images } = machine({ most: 1 });
  const chosen = await Promise.all(["one", "two", "three"].map((text) => environment(text).use()));
  expect(images().toSorted()).toEqual(chosen.toSorted());
  const busy = machine({ most: 1, images: `${EARLIER}\n` });
  writeFileSync(join(busy.tools, "busy"), `${EARLIER}\n`);
  const image = await busy.environment("one").use();
  expect(busy.images()).toEqual([EARLIER, image]);
  expect(busy.calls()).toContain(`image rm ${EARLIER}\n`);
});

test("images of earlier releases go first, and those of others never", async () => {
  const { environment, images } = machine({ most: 1, images: `${EARLIER}\nregistry.example.org/tools:1\n` });
  const image = await environment("one").use();
  expect(images()).toEqual(["registry.example.org/tools:1", image]);
});

test("a build that failed leaves nothing that counts, and removes nothing", async () => {
  const { environment, images, tools } = machine({ most: 1, images: `${EARLIER}\n` });
  writeFileSync(join(tools, "broken"), "");
  const one = environment("one");
  await expect(one.use()).rejects.toMatchObject({ reason: "image_build_failed" });
  expect(images()).toEqual([EARLIER]);
  rmSync(join(tools, "broken"));
  const image = await one.use();
  expect(images()).toEqual([image]);
});
