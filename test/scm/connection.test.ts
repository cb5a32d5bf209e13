import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { SCM_LIMITS } from "../../src/scm/settings.ts";
import { createSourceControl, type SourceControl } from "../../src/scm/source-control.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { until } from "../harness/until.ts";
import { selfSigned } from "../http/certificate.ts";

let host: ScmHost;
let elsewhere: ScmHost;
let scm: SourceControl;

beforeAll(async () => {
  host = await startScmHost({ kind: "gitlab" });
  elsewhere = await startScmHost({ kind: "gitlab" });
  host.addRepository("o/r");
});
afterAll(() => Promise.all([host.stop(), elsewhere.stop()]));
beforeEach(async () => {
  scm = createSourceControl(
    { allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) },
    { ...SCM_LIMITS, responseBytes: 1_000 },
  );
  await scm.hostKind(host.host);
});

const search = (more: object = {}, asked = scm) =>
  asked.searchRepositories({ host: host.host, token: host.token, query: "r", limit: 1, ...more });
const open = (asked = scm) =>
  asked.openPullRequest({
    host: host.host,
    remote: `${host.url}/o/r`,
    token: host.token,
    title: "t",
    description: "",
    branch: "b",
    base: "main",
    draft: false,
  });
const isCreation = ({ method }: { method: string }) => method === "POST";

describe("where requests go", () => {
  const port = () => host.host.split(":")[1];

  test.each([
    ["127.0.0.1", () => `127.0.0.1:${port()}`],
    ["the same as one number", () => `2130706433:${port()}`],
    ["the same in octal", () => `0177.0.0.1:${port()}`],
    ["the same in IPv6", () => `[::ffff:127.0.0.1]:${port()}`],
    ["IPv6 loopback", () => `[::1]:${port()}`],
    ["the metadata of a cloud", () => "169.254.169.254"],
    ["a name that leads there", () => `localhost:${port()}`],
  ])("is not a private address: %s", async (_, name) => {
    const plainHttpHosts = new Set([name()]);
    const before = host.requests.length;
    const closed = createSourceControl({ allowPrivateAddresses: false, plainHttpHosts });
    await expect(closed.hostKind(name())).rejects.toMatchObject({ kind: "refused", retriable: false });
    await expect(search({ host: name() }, closed)).rejects.toMatchObject({ kind: "refused" });
    expect(host.requests).toHaveLength(before);
  });

  test("is one when the operator allows them", async () => {
    const name = `localhost:${port()}`;
    const allowed = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([name]) });
    expect((await search({ host: name.toUpperCase() }, allowed)).cloneUrls).toEqual([
      `http://${name}/o/r.git`,
    ]);
  });

  test("is plain http only where the operator says so", async () => {
    const before = host.requests.length;
    const secure = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set() });
    await expect(search({}, secure)).rejects.toMatchObject({ kind: "unsupported" });
    expect(host.requests).toHaveLength(before);
  });

  test("is TLS with the host's name, else", async () => {
    const certificate = selfSigned();
    const trusted = getCACertificates("default");
    setDefaultCACertificates([...trusted, certificate.cert]);
    const seen: unknown[] = [];
    const server = createTlsServer(certificate, (req, res) => {
      seen.push([(req.socket as TLSSocket).servername, req.headers.host, req.headers.authorization, req.url]);
      res.setHeader("content-type", "application/json").end('{"version":"18.1","revision":"abc"}');
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const name = `localhost:${(server.address() as AddressInfo).port}`;
    await expect(search({ host: name })).rejects.toMatchObject({ kind: "unreadable" });
    expect(seen).toEqual([
      ["localhost", name, undefined, "/api/v4/version"],
      ["localhost", name, `Bearer ${host.token}`, expect.stringMatching(/^\/api\/v4\/projects\?/)],
    ]);
    setDefaultCACertificates(trusted);
    await new Promise((resolve) => server.close(resolve));
  });

  test("is no server whose certificate nobody vouches for", async () => {
    const seen: unknown[] = [];
    const server = createTlsServer(selfSigned(), (req, res) => {
      seen.push(req.headers);
      res.end();
    });
    server.on("tlsClientError", () => {});
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const name = `localhost:${(server.address() as AddressInfo).port}`;
    await expect(scm.hostKind(name)).rejects.toMatchObject({
      kind: "unavailable",
      message: `${name} could not be reached (DEPTH_ZERO_SELF_SIGNED_CERT)`,
    });
    expect(seen).toEqual([]);
    await new Promise((resolve) => server.close(resolve));
  });

  test.each([
    "",
    "a b",
    "a/b",
    "a?b",
    "a#b",
    "user@a",
    "user:word@a",
    "a\\b",
    "a:99999",
    "a:b",
    "%61",
    "[::1",
    "a\n",
  ])("is nothing that is no host: %j", async (name) => {
    await expect(scm.hostKind(name)).rejects.toMatchObject({ kind: "refused" });
  });

  test("is no name that nobody knows", async () => {
    await expect(scm.hostKind("nobody.invalid")).rejects.toMatchObject({
      kind: "unavailable",
      retriable: true,
    });
  });
});

describe("redirects", () => {
  const to = (location: string, status = 302) => ({ status, headers: { location } });

  test("to another host, port or scheme are not followed", async () => {
    const port = host.host.split(":")[1];
    const places = [
      `${elsewhere.url}/api/v4/projects`,
      `//${elsewhere.host}/`,
      `https://${host.host}/`,
      `http://localhost:${port}/`,
      "https://example.org/",
      "http://[",
    ];
    for (const place of places) {
      for (const status of [301, 302, 303, 307, 308]) {
        host.fail(to(place, status));
        await expect(search()).rejects.toMatchObject({ kind: "refused" });
      }
    }
    expect(elsewhere.requests).toEqual([]);
  });

  test("at the same host are followed three times and no more", async () => {
    const again = to("/api/v4/projects?search=r");
    host.fail(again, { times: 3 });
    expect((await search()).cloneUrls).toHaveLength(1);
    host.fail(again, { times: 4 });
    await expect(search()).rejects.toMatchObject({ kind: "unreadable" });
  });

  test.each([301, 302, 303])("that would lose what is to be created are not followed: %i", async (status) => {
    host.fail(to("/api/v4/projects/o%2Fr/merge_requests", status), { when: isCreation });
    await expect(open()).rejects.toMatchObject({ kind: "not_found" });
  });

  test("without a place to go to are no answer", async () => {
    host.fail({ status: 302 });
    await expect(search()).rejects.toMatchObject({ kind: "unreadable" });
  });
});

describe("answers", () => {
  /** One that knows the host, which takes as many attempts as this process stalls in. */
  const inAHurry = async () => {
    const hurried = createSourceControl(
      { allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) },
      { ...SCM_LIMITS, timeoutMs: 200 },
    );
    const knows = () =>
      hurried.hostKind(host.host).then(
        () => true,
        () => false,
      );
    await until(knows, (isKnown) => isKnown);
    return hurried;
  };

  test("may have the bytes that are allowed and no more", async () => {
    host.fail({ bytes: 1_000 });
    await expect(search()).rejects.toMatchObject({ message: expect.stringContaining("answered no list") });
    host.fail({ bytes: 1_001 });
    await expect(search()).rejects.toMatchObject({
      kind: "unreadable",
      message: `${host.host} answered more than 1000 bytes`,
    });
  });

  test("that do not come in time end the call, to be tried again", async () => {
    const hurried = await inAHurry();
    host.fail("hang");
    await expect(search({}, hurried)).rejects.toMatchObject({
      kind: "unavailable",
      retriable: true,
      message: `${host.host} did not answer within 200 ms`,
    });
  });

  test("that break off end the call, to be tried again", async () => {
    host.fail("reset");
    await expect(search()).rejects.toMatchObject({ kind: "unavailable", retriable: true });
  });

  test("that switch to another protocol end the call", async () => {
    host.fail({ status: 101, headers: { connection: "upgrade", upgrade: "other" } });
    await expect(search()).rejects.toMatchObject({
      kind: "unreadable",
      message: `${host.host} ended without an answer`,
    });
  });

  test("that stop in the middle end the call in time, too", async () => {
    const hurried = await inAHurry();
    host.fail("stall");
    await expect(search({}, hurried)).rejects.toMatchObject({ kind: "unavailable" });
  });

  test("are not waited for once the caller has gone, and its reason is what is thrown", async () => {
    const gone = new AbortController();
    host.fail("hang");
    const asked = host.requests.length;
    const call = search({ signal: gone.signal });
    while (host.requests.length === asked) await new Promise((resolve) => setImmediate(resolve));
    gone.abort(new Error("the step was cancelled"));
    await expect(call).rejects.toThrow("the step was cancelled");
    await expect(search({ signal: gone.signal })).rejects.toThrow("the step was cancelled");
    expect(host.requests).toHaveLength(asked + 1);
  });
});
