import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Egress, type OpenNetwork } from "../../src/runner/egress/egress.ts";
import type { Isolation } from "../../src/runner/isolation/isolation.ts";
import { runProgram } from "../harness/program.ts";
import { realPrograms } from "../harness/runner-git.ts";
import { temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { ABSTRACT_SOCKET, ATTEMPTS, makeWorld } from "../isolation/attempts.ts";
import { expectConfined } from "../isolation/confined.ts";
import {
  hasIpv6,
  NETWORK_ATTEMPTS,
  type NetworkWorld,
  openNetworkWorld,
  python,
  REACHED,
} from "../isolation/network-attempts.ts";
import { bare, enter, isRoot, type Place } from "../isolation/sandboxes.ts";
import { CONTAINER_USER, containers, listContainers } from "./containers.ts";

const world = makeWorld();
let network: OpenNetwork | undefined;
let machine: NetworkWorld;
let isolation: Isolation;
let container: Place;
let free: Place;

beforeAll(async () => {
  machine = await openNetworkWorld();
  // The image is shown, and the machine's folders in it that one of these files is in.
  isolation = await containers(world.hidden.filter((path) => path !== world.variables.IN_SYSTEM));
  const egress = new Egress({
    serverUrl: "",
    named: { registries: [], models: [] },
    privateNetworks: [],
    machine: { programs: { ...realPrograms, path: "" }, env: {} },
  });
  container = await enter(isolation, async (folder) => {
    network = await egress.open({ folder, initializer: undefined });
    return network;
  });
  free = await enter(bare);
});

afterAll(async () => {
  await network?.close();
  machine.close();
  await world.close();
});

/** Files in the system's folders are those of the image. */
const IN_IMAGE = "a hidden file in the system's folders";

describe("work in a container does not reach", () => {
  test.each(ATTEMPTS.filter(({ name }) => name !== IN_IMAGE))(
    "$name ($means)",
    async ({ script, needsRoot }) => {
      const attempt = (place: Place) =>
        place.sh(script, { ...world.variables, WORKSPACE_FOLDER: place.workspace.folder });
      const kept = await attempt(container);
      expect(kept).not.toMatchObject({ exit: 0 });
      expect(kept.text).not.toMatch(/hidden|MARK_OF_OTHERS/);
      // Otherwise this line would show nothing.
      if (isRoot || !needsRoot) expect(await attempt(free)).toMatchObject({ exit: 0 });
    },
  );

  test.each(NETWORK_ATTEMPTS.filter(({ needs = true }) => needs))(
    "$name (network of its own)",
    async ({ script }) => {
      expect((await container.sh(script, machine.variables)).text).not.toContain(REACHED);
      expect((await free.sh(script, machine.variables)).text).toContain(REACHED);
    },
  );

  test("the abstract sockets of the machine (network of its own)", async () => {
    expect(await container.sh(ABSTRACT_SOCKET)).toMatchObject({
      exit: 1,
      text: expect.stringContaining("refused"),
    });
    expect(await free.sh(ABSTRACT_SOCKET)).toEqual({ exit: 0, text: "reached\n" });
  });

  test("a host that no rule allows, or an address in any spelling (egress proxy)", async () => {
    const { TCP = "" } = machine.variables;
    for (const host of [
      "127.0.0.1",
      "0x7f000001",
      "2130706433",
      "localhost",
      "169.254.169.254",
      "a.example",
    ]) {
      const { text } = await container.sh(`curl -sS --noproxy '' http://${host}:${TCP}/`);
      expect(text).not.toContain(REACHED);
      expect(text).toContain("is not reached");
    }
  });
});

test("work has no capabilities, gets no new privileges, and has its own namespaces", async () => {
  await expectConfined(container, free, "pid ipc uts net mnt");
});

/** Arguments of `sleep` that no other process has. */
const SECONDS = `${4711 + process.pid}.${Date.now() % 1000}`;

/** The users of the processes of this machine that have a word among their arguments and are in a container. */
function usersOf(word: string): readonly string[][] {
  return readdirSync("/proc").flatMap((id) => {
    try {
      const words = readFileSync(`/proc/${id}/cmdline`, "utf8").split("\0");
      const status = readFileSync(`/proc/${id}/status`, "utf8");
      const users = /^Uid:\s*(.*)$/m.exec(status)?.[1]?.split("\t") ?? [];
      return words.includes(word) && /^NSpid:\t\d+\t\d+/m.test(status) ? [users] : [];
    } catch {
      return [];
    }
  });
}

test("everything that a command leaves behind ends with it, sessions of their own too, and nothing of it was root's", async () => {
  const running = container.sh(
    `setsid sh -c 'setsid sleep ${SECONDS}1 & sleep ${SECONDS}1' & until [ -e ended ]; do sleep 0.1; done; exit 3`,
  );
  const users = await until(
    () => usersOf(`${SECONDS}1`),
    (found) => found.length >= 2,
  );
  const user = String(CONTAINER_USER ?? process.getuid?.());
  expect(user).not.toBe("0");
  for (const each of users) expect(each).toEqual([user, user, user, user]);
  writeFileSync(join(container.workspace.tree, "ended"), "");
  expect(await running).toMatchObject({ exit: 3 });
  expect(usersOf(`${SECONDS}1`)).toEqual([]);
});

test("files of the workspace stay for the next command, and what it is configured to read is not written to", async () => {
  expect((await container.sh("echo kept > /tmp/file; echo own > own; echo home > ~/file")).exit).toBe(0);
  expect((await container.sh("cat /tmp/file own ~/file; touch /usr/x /x")).text).toMatch(
    /^kept\nown\nhome\n[\s\S]*Read-only[\s\S]*Read-only/,
  );
});

test("work without a way out has no network at all", async () => {
  const place = await enter(isolation);
  const [first] = NETWORK_ATTEMPTS;
  expect((await place.sh(first?.script ?? "", machine.variables)).text).not.toContain(REACHED);
  expect((await place.sh(python('print("runs")'))).text).toBe("runs\n");
  expect((await place.sh("grep -c : /proc/net/dev")).text).toBe("1\n");
});

const testOnIpv6 = hasIpv6 ? test : test.skip; // This machine has no address of IPv6 to try.

testOnIpv6("the loopback of the work is its own, by IPv6 too", async () => {
  expect((await container.sh("cat /proc/net/if_inet6")).text).toMatch(/^0{31}1 .* lo\n$/);
});

test("a command and its container end when the runner is killed", async () => {
  const folder = temporaryFolder();
  const here = import.meta.dirname;
  const script = `
    import { enter } from ${JSON.stringify(join(here, "../isolation/sandboxes.ts"))};
    import { containers } from ${JSON.stringify(join(here, "containers.ts"))};
    const place = await enter(await containers());
    await place.sh("setsid sleep ${SECONDS}2 & sleep ${SECONDS}2");`;
  const file = join(folder, "runner.ts");
  writeFileSync(file, script);
  const running = runProgram("bash", ["-c", `${process.execPath} ${file} & echo $! > ${folder}/id; wait`]);
  const others = await listContainers();
  await until(
    () => usersOf(`${SECONDS}2`),
    (found) => found.length >= 2,
  );
  process.kill(Number(readFileSync(join(folder, "id"), "utf8")), "SIGKILL");
  await running;
  await until(
    () => usersOf(`${SECONDS}2`),
    (found) => found.length === 0,
  );
  expect(await until(listContainers, (list) => list === others)).toBe(others);
});
