import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { text } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { WorkSchema } from "#gen/runner/v1/work_pb.js";
import { placeholderOf } from "../../src/domain/policy/proxied-secret/credential-proxy.ts";
import { createCredentialAuthority } from "../../src/runner/egress/credential-authority.ts";
import { Egress } from "../../src/runner/egress/egress.ts";
import { mountSecrets } from "../../src/runner/process/work-secrets.ts";
import { realPrograms } from "../harness/runner-git.ts";
import { bubblewrap, enter, type Place, removeAll } from "./sandboxes.ts";

const TOKEN = "Rumpelstiltskin-7b1e";
const ID = "01900000-0000-7000-8000-00000000000a";
const closing: { close(): unknown }[] = [];
const got: IncomingMessage[] = [];

async function listening(server: Server): Promise<number> {
  closing.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

let place: Place;
let variables: Record<string, string>;
let secure: number;
let expired: number;
let plain: number;

/** Starts a host for every name with certificates of an authority. */
async function startHost(madeAt: number): Promise<{ port: number; certificate: string }> {
  const authority = await createCredentialAuthority(madeAt);
  const answer = async (req: IncomingMessage, res: ServerResponse) => {
    got.push(req);
    const body = await text(req);
    if (req.url === "/redirect")
      return res.writeHead(302, { Location: `https://b.example:${secure}/echo` }).end();
    res.writeHead(200, { "X-Echo": req.headers.authorization ?? "none" });
    const echo = JSON.stringify({ headers: req.rawHeaders, body });
    const middle = echo.indexOf(TOKEN) + 7;
    res.write(echo.slice(0, middle), () => res.end(echo.slice(middle)));
  };
  const server = createServer({
    SNICallback: (name, callback) =>
      void authority.contextFor(name).then((context) => callback(null, context), callback),
  });
  server.on("request", (req, res) => void answer(req, res));
  return { port: await listening(server), certificate: authority.certificate };
}

beforeAll(async () => {
  const [host, old] = [await startHost(Date.now()), await startHost(Date.parse("2020-01-01"))];
  [secure, expired] = [host.port, old.port];
  plain = await listening(
    createHttpServer((req, res) => {
      got.push(req);
      res.end(`plain ${req.headers.authorization}`);
    }),
  );
  const ports = [secure, expired, plain];
  const names = ["a.example", "b.example"];
  const credentialProxy = {
    targetHosts: ports.map((port) => `A.example:${port}`),
    header: "authorization",
    placeholderMount: { case: "environmentVariable", value: true } as const,
  };
  const work = create(WorkSchema, {
    secrets: [{ secretId: ID, name: "API_TOKEN", value: TOKEN, credentialProxy }],
  });
  const egress = new Egress({
    serverUrl: "",
    named: {
      models: [],
      registries: names.map((name) => ({ name: "registries", host: name, ports })),
    },
    privateNetworks: [{ address: "127.0.0.0", prefix: 8, family: "ipv4" }],
    machine: { programs: { ...realPrograms, path: "" }, env: {}, home: "/nonexistent" },
    resolve: async () => ["127.0.0.1"],
    authorities: [host.certificate, old.certificate],
  });
  place = await enter(
    await bubblewrap({ readable: [process.execPath], limits: { memoryBytes: 2 ** 33 } }),
    async (folder) => {
      variables = await mountSecrets(work, `${folder}/secrets`);
      const secrets = work.secrets.flatMap(({ credentialProxy: proxy, ...secret }) =>
        proxy ? [{ ...secret, ...proxy }] : [],
      );
      const network = await egress.open({ folder, initializer: undefined, secrets });
      closing.push(network);
      return network;
    },
  );
});

afterAll(async () => {
  for (const each of closing.splice(0).reverse()) await each.close();
  await removeAll();
});

/** Runs a script, and returns what it prints and the headers with credentials that hosts have got meanwhile. */
async function ran(script: string, more: Record<string, string> = {}) {
  got.length = 0;
  const { exit, text: printed } = await place.sh(script, {
    ...variables,
    SECURE: String(secure),
    EXPIRED: String(expired),
    PLAIN: String(plain),
    ...more,
  });
  expect(printed.toLowerCase()).not.toContain(TOKEN.toLowerCase());
  return { exit, printed, credentials: got.map(({ headers }) => headers.authorization) };
}

const python = (body: string) => `exec /usr/bin/python3 -c '${body}'`;

describe("a secret with a credential proxy", () => {
  test.each<[string, string]>([
    ["curl", 'curl -sS --http2 -i -H "Authorization: mine" https://a.example:$SECURE/echo'],
    [
      "Node",
      `${process.execPath} -e 'fetch("https://a.example:" + process.env.SECURE + "/echo").then(async (r) => console.log(r.headers.get("x-echo"), await r.text()))'`,
    ],
    [
      "Python",
      python(
        'import os, urllib.request as u; r = u.urlopen("https://a.example:" + os.environ["SECURE"] + "/echo"); print(r.headers["x-echo"], r.read().decode())',
      ),
    ],
    ["git", "GIT_CURL_VERBOSE=1 git ls-remote https://a.example:$SECURE/x.git 2>&1; true"],
  ])("is in the requests of %s, and in no answer", async (_, script) => {
    const { exit, printed, credentials } = await ran(script);
    expect(credentials.length).toBeGreaterThan(0);
    expect(new Set(credentials)).toEqual(new Set([TOKEN]));
    expect(printed).toContain("***");
    expect(exit).toBe(0);
  });

  test("takes the place of its placeholder alone, which the work has", async () => {
    const { credentials, printed } = await ran(
      'echo "$API_TOKEN"; curl -sS -H "Authorization: Bearer $API_TOKEN" https://a.example:$SECURE/echo',
    );
    expect(printed).toContain(placeholderOf(ID));
    expect(credentials).toEqual([`Bearer ${TOKEN}`]);
  });

  test.each<[string, string, readonly (string | undefined)[]]>([
    ["where a redirect leads", "curl -sSL https://a.example:$SECURE/redirect", [TOKEN, undefined]],
    ["to another host of the same address", "curl -sS https://b.example:$SECURE/", [undefined]],
    [
      "to that by the tunnel of another",
      "curl -sSk --connect-to a.example:$SECURE:b.example:$SECURE https://a.example:$SECURE/",
      [undefined],
    ],
    ["where Host is another", 'curl -sS -H "Host: b.example:$SECURE" https://a.example:$SECURE/', []],
    [
      "where the name in TLS is another",
      "curl -sSk --connect-to b.example:$SECURE:a.example:$SECURE https://b.example:$SECURE/",
      [],
    ],
    [
      "over plain HTTP",
      "curl -sS http://a.example:$PLAIN/; curl -sS -p http://a.example:$PLAIN/",
      [undefined],
    ],
    [
      "to a host whose certificate has expired, though the work does not look",
      "curl -sSk https://a.example:$EXPIRED/",
      [],
    ],
  ])("is not sent %s", async (_, script, expected) => {
    expect((await ran(script)).credentials).toEqual(expected);
  });

  test("is in no variable, file or memory that the work can read, nor is the authority's key", async () => {
    const { printed } = await search("");
    expect(printed).toMatch(/^True\nno key\nlooked at \d{3,} places\n$/);
    // It is found where it is there.
    const { printed: control } = await search(
      'export LEAK=$(echo "$HALF-7b1e"); echo "$LEAK" > /tmp/leak; unset HALF;',
    );
    for (const where of ["/tmp/leak", "/proc/self/environ", "/proc/self/mem"])
      expect(control).toContain(`found in ${where}\n`);
  });
});

/** Has a program look for the value, of which it has the hash alone, after a request that carries it. */
async function search(before: string) {
  const program = `
import hashlib, os, re
def holds(data):
    ends = (match.end() for match in re.finditer(b"7b1e", data))
    return any(hashlib.sha256(data[end - ${TOKEN.length}:end]).hexdigest() == "${createHash("sha256").update(TOKEN).digest("hex")}" for end in ends)
places = 0
def look(name, data):
    global places
    places += 1
    if holds(data): print("found in", name)
def look_at_file(path):
    try:
        with open(path, "rb") as file: look(path, file.read(5000000))
    except OSError: pass
print(len(os.popen("curl -sS https://a.example:$SECURE/echo").read()) > 50 or "no answer")
own = os.environ["SSL_CERT_FILE"]
print("a key" if b"PRIVATE KEY" in open(own, "rb").read() else "no key")
for top in [os.getcwd(), os.environ["HOME"], "/tmp", "/etc", "/run", "/dev/shm", os.path.dirname(own)]:
    for folder, _, names in os.walk(top):
        for path in (os.path.join(folder, name) for name in names):
            if os.path.isfile(path): look_at_file(path)
for process in ["self", *filter(str.isdigit, os.listdir("/proc"))]:
    for name in ["environ", "cmdline"]: look_at_file("/proc/" + process + "/" + name)
with open("/proc/self/maps") as maps:
    regions = [[int(x, 16) for x in line.split()[0].split("-")] for line in maps if " rw" in line]
with open("/proc/self/mem", "rb", 0) as memory:
    for start, end in regions:
        try:
            memory.seek(start)
            look("/proc/self/mem", memory.read(end - start))
        except (OSError, ValueError, OverflowError): pass
print("looked at", places, "places")
`;
  const half = TOKEN.slice(0, -"-7b1e".length);
  const script = `cat > search.py <<'EOF'\n${program}\nEOF\n${before} exec /usr/bin/python3 search.py`;
  return ran(script, { HALF: before === "" ? "" : half });
}
