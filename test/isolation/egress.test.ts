import { createServer as createHttpServer } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Egress, type EgressOptions, type OpenNetwork } from "../../src/runner/egress/egress.ts";
import { realPrograms } from "../harness/runner-git.ts";
import {
  hasIpv6,
  listening,
  NETWORK_ATTEMPTS,
  type NetworkWorld,
  openNetworkWorld,
  python,
  REACHED,
} from "./network-attempts.ts";
import { bare, bubblewrap, enter, type Place, removeAll } from "./sandboxes.ts";

const closing: { close(): unknown }[] = [];
const NOBODY = { named: { registries: [], models: [] }, privateNetworks: [] };
const LOOPBACK = { privateNetworks: [{ address: "127.0.0.0", prefix: 8, family: "ipv4" }] } as const;

/** Lets work into a workspace whose way out a proxy with these options decides. */
async function enterWith(options: Partial<EgressOptions>): Promise<Place> {
  const machine = { programs: { ...realPrograms, path: "" }, env: {}, home: "/nonexistent" };
  const egress = new Egress({ serverUrl: "", ...NOBODY, machine, ...options });
  return enter(await bubblewrap(), async (folder) => {
    const network = await egress.open({ folder, initializer: undefined });
    closing.push(network satisfies OpenNetwork);
    return network;
  });
}

let variables: NetworkWorld["variables"];
let page: number;

beforeAll(async () => {
  const world = await openNetworkWorld();
  closing.push(world);
  variables = world.variables;
  const site = createHttpServer((req, res) => {
    if (req.url === "/redirect") res.writeHead(302, { Location: `http://127.0.0.1:${page}/` }).end();
    else res.end(`${REACHED} as ${req.headers.host}\n`);
  });
  closing.push(site);
  page = await listening(site, "127.0.0.1");
});

afterAll(async () => {
  for (const each of closing.splice(0).reverse()) each.close();
  await removeAll();
});

/** Names that an operator would list. */
const named = (host: string) => ({
  named: { models: [], registries: [{ name: "registries", host, ports: [page] }] },
});

describe("by its network namespace, and its proxy, work does not reach", () => {
  let place: Place;
  let free: Place;
  beforeAll(async () => {
    place = await enterWith({});
    free = await enter(bare);
  });

  test.each(NETWORK_ATTEMPTS.filter(({ needs = true }) => needs))("$name", async ({ script }) => {
    expect((await place.sh(script, variables)).text).not.toContain(REACHED);
    // Otherwise this line would show nothing.
    expect((await free.sh(script, variables)).text).toContain(REACHED);
  });

  test("a host by the proxy that no rule allows, and reports once which policy decides", async () => {
    const { exit, text } = await place.sh(
      "curl -sS -o /dev/null https://a.example/; curl -s https://a.example/",
    );
    expect(exit).toBe(56);
    const line =
      "chartroom: a.example:443 is not reached: the organization's policy `egress` does not allow it\n";
    expect(text.split(line)).toHaveLength(2);
    expect((await place.sh("curl -s https://a.example/")).text).toBe("");
    // An agent's run has it as a warning, since nobody reads what it writes at its end.
    const [warning] = (closing.at(-1) as OpenNetwork).warnings();
    expect(warning).toMatchObject({
      reason: "egress_refused",
      message: line.slice("chartroom: ".length).trim(),
    });
  });

  test("an address by the proxy, in whatever spelling", async () => {
    for (const host of ["127.0.0.1", "0x7f000001", "2130706433", "localhost", "169.254.169.254"]) {
      const script = `curl -s -S --noproxy '' http://${host}:${page}/; curl -sS --noproxy '' -p http://${host}:${page}/`;
      const { text } = await place.sh(script);
      expect(text).not.toContain(REACHED);
      expect(text).toMatch(/is not reached|403/);
    }
  });
});

test("work without a way out has no network at all", async () => {
  const place = await enter(await bubblewrap());
  expect((await place.sh(NETWORK_ATTEMPTS[0]?.script ?? "", variables)).text).not.toContain(REACHED);
  expect((await place.sh("grep -c : /proc/net/dev")).text).toBe("1\n");
});

describe("by the proxy a name that is allowed", () => {
  test("is reached at its address, for the port that is allowed, by requests and by tunnels", async () => {
    const place = await enterWith({ ...LOOPBACK, ...named("a.example"), resolve: async () => ["127.0.0.1"] });
    for (const options of ["", "-p"]) {
      const { text } = await place.sh(`curl -sS ${options} http://a.example:${page}/`);
      expect(text).toBe(`${REACHED} as a.example:${page}\n`);
    }
    expect((await place.sh(`curl -sS http://a.example:${variables.TCP}/`)).text).not.toContain(REACHED);
  });

  test("is not reached at an address that is not public, unless the operator names it", async () => {
    const place = await enterWith({ ...named("a.example"), resolve: async () => ["127.0.0.1"] });
    const { text } = await place.sh(
      `curl -sS http://a.example:${page}/; curl -sS -p http://a.example:${page}/`,
    );
    expect(text).not.toContain(REACHED);
    expect(text).toContain("its address is not public, and the runner's operator does not name it");
  });

  test("leads nowhere else by a redirect", async () => {
    const place = await enterWith({ ...LOOPBACK, ...named("a.example"), resolve: async () => ["127.0.0.1"] });
    const { text } = await place.sh(`curl -sSL --noproxy '' http://a.example:${page}/redirect`);
    expect(text).toContain(`127.0.0.1:${page} is not reached`);
    expect(text).not.toContain(REACHED);
  });

  test("leads nowhere else when its address changes", async () => {
    const answers = [["127.0.0.1"], ["127.0.0.2"]];
    const networks = [{ address: "127.0.0.2", prefix: 32, family: "ipv4" }] as const;
    const place = await enterWith({
      ...named("a.example"),
      privateNetworks: networks,
      // First the allowed address, and another for who asks again.
      resolve: async () => answers.pop() ?? ["127.0.0.1"],
    });
    // Nothing listens at the address that was checked: the other one would answer.
    const { text } = await place.sh(`curl -sS http://a.example:${page}/; curl -sS http://a.example:${page}/`);
    expect(text).toMatch(/the host is not reached[\s\S]*its address is not public/);
    expect(text).not.toContain(REACHED);
  });
});

test("the service is reached at its own address, and at no other port of it", async () => {
  const place = await enterWith({ serverUrl: `http://127.0.0.1:${page}` });
  expect((await place.sh(`curl -sS http://127.0.0.1:${page}/`)).text).toBe(
    `${REACHED} as 127.0.0.1:${page}\n`,
  );
  expect((await place.sh(NETWORK_ATTEMPTS[0]?.script ?? "", variables)).text).not.toContain(REACHED);
  // By the proxy as well, for programs that ignore NO_PROXY.
  expect((await place.sh(`curl -sS --noproxy '' http://127.0.0.1:${page}/`)).text).toContain(REACHED);
});

const testOnIpv6 = hasIpv6 ? test : test.skip; // This machine has no address of IPv6 to try.

testOnIpv6("the service is reached at an address of IPv6", async () => {
  const port = variables.TCP6 ?? "";
  const place = await enterWith({ serverUrl: `http://[::1]:${port}` });
  const script = python(
    'print(socket.create_connection(("::1", int(os.environ["TCP6"]))).recv(99).decode())',
  );
  expect(await place.sh(script, variables)).toMatchObject({ text: `${REACHED}\n` });
});

test("the commands of a piece of work share its network, which ends with it", async () => {
  const place = await enterWith({});
  const listen = python(
    'import time\ns = socket.create_server(("127.0.0.1", 40000)); print("listens", flush=True); s.accept()[0].sendall(b"one")',
  );
  const began = Promise.withResolvers<void>();
  const first = place.run({
    program: "sh",
    args: ["-c", listen],
    folder: place.workspace.tree,
    environment: { PATH: "/usr/bin:/bin" },
    onOutput: () => began.resolve(),
  });
  await began.promise;
  const ask = python('print(socket.create_connection(("127.0.0.1", 40000)).recv(99).decode())');
  expect(await place.sh(ask)).toEqual({ exit: 0, text: "one\n" });
  expect(await first).toMatchObject({ exit: 0 });
  (closing.pop() as OpenNetwork).close();
  await expect(place.sh("true")).rejects.toMatchObject({ reason: "command_not_started" });
});
