import { once } from "node:events";
import { copyFileSync, existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import tls from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { makeCertificates } from "../harness/certificates.ts";
import { startHostedRunner, startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import {
  runHostedCommand,
  startHostedServer,
  startServer,
  stopAll,
  type TestServer,
  temporaryFolder,
} from "../harness/server.ts";
import { page } from "../harness/session.ts";
import { startTokenIssuer, type TokenIssuer } from "../harness/token-issuer.ts";
import { until } from "../harness/until.ts";
import { selfSigned } from "../http/certificate.ts";

const HOST = "subjectAltName=IP:127.0.0.1";
const RENEWED = "the renewed certificate is in use";
const KEPT = "the certificate was not renewed: the one before stays in use";

const folder = temporaryFolder();
const [cert, key, providers] = ["cert.pem", "key.pem", "providers.json"].map((name) =>
  join(folder, name),
) as [string, string, string];
const certificates = makeCertificates();
const ca = readFileSync(certificates.ca, "utf8");
const first = certificates.sign("first", HOST);
const second = certificates.sign("second", HOST);
const third = certificates.sign("third", HOST);

const trustedBefore = tls.getCACertificates("default");
let server: TestServer;
beforeAll(async () => {
  // What the calls of this file trust; the runner is a process of its own, and receives them.
  tls.setDefaultCACertificates([...trustedBefore, ca]);
  copyFileSync(first.cert, cert);
  copyFileSync(first.key, key);
  server = await startServer({ args: ["--tls-cert", cert, "--tls-key", key] });
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
  tls.setDefaultCACertificates(trustedBefore);
});

/** The common name of the certificate that a new connection meets. */
async function servedName(): Promise<string | string[] | undefined> {
  const socket = tls.connect({ host: "127.0.0.1", port: server.port, ca });
  await once(socket, "secureConnect");
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return subject.CN;
}

const logged = (message: string) => server.log().filter(({ msg }) => msg === message).length;
const untilLogged = (message: string, times: number) =>
  until(
    () => logged(message),
    (count) => count === times,
  );

async function get(agent: Agent): Promise<string> {
  const req = request(`${server.url}/healthz`, { ca, agent });
  req.end();
  const [res] = await once(req, "response");
  return text(res);
}

describe("a certificate that is renewed while the server runs", () => {
  test("is served to new connections without a word, and connections that there are go on", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const before = await get(agent);
    expect(await servedName()).toBe("first");
    copyFileSync(second.cert, cert);
    copyFileSync(second.key, key);
    await untilLogged(RENEWED, 1);
    expect(await servedName()).toBe("second");
    expect(await get(agent)).toBe(before);
    agent.destroy();
  });

  test("is not served before its key has come too; SIGHUP looks at once", async () => {
    const failures = logged(KEPT);
    copyFileSync(third.cert, cert);
    server.process.kill("SIGHUP");
    await until(
      () => logged(KEPT),
      (count) => count > failures,
    );
    expect(await servedName()).toBe("second");
    copyFileSync(third.key, key);
    server.process.kill("SIGHUP");
    await untilLogged(RENEWED, 2);
    expect(await servedName()).toBe("third");
  });

  test("is not served before its key has come when the type of the key changes, as from RSA to EC", async () => {
    const failures = logged(KEPT);
    writeFileSync(cert, selfSigned().cert);
    server.process.kill("SIGHUP");
    await untilLogged(KEPT, failures + 1);
    expect(await servedName()).toBe("third");
    copyFileSync(third.cert, cert);
  });

  test("leaves a file that cannot be read where it was, and says so once", async () => {
    const failures = logged(KEPT);
    writeFileSync(cert, "nothing of use");
    const looks = logged("reading the files of the settings again");
    for (const look of [1, 2, 3]) {
      server.process.kill("SIGHUP");
      await untilLogged("reading the files of the settings again", looks + look);
    }
    await untilLogged(KEPT, failures + 1);
    expect(await servedName()).toBe("third");
    copyFileSync(third.cert, cert);
  });
});

describe("a runner", () => {
  test("that is configured with a private authority works for its server, and SIGHUP does not end it", async () => {
    const runner = await startRegisteredRunner(server, { args: ["--ca-file", certificates.ca] });
    runner.process.kill("SIGHUP");
    await post(server, "RunnerService/ListRunners");
    expect([runner.process.exitCode, runner.process.signalCode]).toEqual([null, null]);
    expect(await runner.stop()).toBe(0);
  });

  test.each([
    ["another authority", ["--ca-file", certificates.otherCa]],
    ["none", []],
  ] as const)("that is configured with %s reaches nothing, and logs why", async (_, args) => {
    const runner = await startHostedRunner(server, {
      args,
      env: { CHARTROOM_EXCHANGE_TOKEN: "cr_exc_none" },
    });
    const { problem } = await runner.untilLogged("the server cannot be reached; trying again");
    expect(problem).toMatch(/certificate/);
    await runner.stop();
  });

  test.each([
    ["is missing", "/nowhere/ca.pem"],
    ["holds no certificate", "package.json"],
  ])("does not start when the file %s", async (_, file) => {
    const answer = await runHostedCommand(["runner", "--server", server.url, "--ca-file", file]);
    expect([answer.code, answer.stderr]).toEqual([
      1,
      expect.stringContaining(`--ca-file ${file} cannot be used`),
    ]);
  });
});

describe("sign-in providers", () => {
  test("are read again by SIGHUP, and stay while the file cannot be used", async () => {
    const own = await startHostedServer();
    const { organizationId } = (await post(own, "IdentityService/GetAuthenticatedIdentity")).body;
    await own.stop();
    const write = (name: string) =>
      writeFileSync(
        providers,
        JSON.stringify({
          providers: [{ id: "one", name, issuer: "https://id.example.org", clientId: "c", organizationId }],
        }),
      );
    write("The first");
    const serving = await startServer({
      dataDir: own.dataDir,
      args: ["--sign-in-providers", providers],
    });
    const names = async () => {
      const { body } = await page(serving, "person", { secret: "" });
      return body.providers.map(({ name }: { name: string }) => name);
    };
    const reload = async (message: string) => {
      const count = () => serving.log().filter(({ msg }) => msg === message).length;
      const before = count();
      serving.process.kill("SIGHUP");
      await until(count, (now) => now > before);
    };
    expect(await names()).toEqual(["The first"]);
    write("The second");
    await reload("reading the files of the settings again");
    await until(names, ([name]) => name === "The second");
    writeFileSync(providers, "{");
    await reload("the sign-in providers were not read again: those before stay in use");
    expect(await names()).toEqual(["The second"]);
  });
});

test("a log file that was moved is written again after SIGHUP, and no line is on standard error", async () => {
  const file = join(temporaryFolder(), "server.log");
  const logging = await startServer({ args: ["--log-file", file] });
  const lines = (path: string) =>
    readFileSync(path, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).msg);
  expect(lines(file)).toContain("listening");
  renameSync(file, `${file}-moved`);
  logging.process.kill("SIGHUP");
  await until(() => existsSync(file), Boolean);
  await post(logging, "ProjectService/ListProjects", {});
  expect(await logging.stop()).toBe(0);
  expect(lines(file).slice(-2)).toEqual(["stopping", "stopped"]);
  expect(lines(file)).toContain("call");
  expect(lines(`${file}-moved`)).not.toContain("stopped");
  expect([logging.logText(), statSync(file).mode & 0o777]).toEqual(["", 0o600]);
});

test("a log file that cannot be written stops the start, with the setting's name", async () => {
  const args = ["--log-file", join(temporaryFolder(), "no-folder", "server.log")];
  await expect(startHostedServer({ args })).rejects.toThrow(/--log-file .* cannot be written: ENOENT/);
});

describe("issuers of machines' tokens", () => {
  let issuer: TokenIssuer;
  beforeAll(async () => {
    issuer = await startTokenIssuer();
  });
  afterAll(() => issuer.close());

  test("are taken and left by SIGHUP, and stay while the file cannot be used", async () => {
    const file = join(temporaryFolder(), "issuers.json");
    const write = (...issuers: object[]) => writeFileSync(file, JSON.stringify({ issuers }));
    const other = { issuer: "https://ci.example.org", audiences: ["chartroom"] };
    write(other);
    const own = await startHostedServer();
    await own.stop();
    const serving = await startServer({ dataDir: own.dataDir, args: ["--machine-issuers", file] });
    const create = (operation: string, body: object) =>
      post(serving, `ServiceAccountService/${operation}`, body, own.token);
    const account = { name: "Robot", validUntil: "2999-12-31T00:00:00Z" };
    const { serviceAccount } = (await create("CreateServiceAccount", account)).body;
    const trust = () =>
      create("CreateServiceAccountTrust", {
        serviceAccountId: serviceAccount.id,
        issuer: issuer.issuer,
        audience: "chartroom",
        conditions: [{ claim: "sub", value: "repo:acme/app:ref:refs/heads/main" }],
      });
    const exchange = async () => {
      const body = new URLSearchParams({
        grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
        subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
        subject_token: await issuer.sign(),
        service_account_id: serviceAccount.id,
      });
      const res = await fetch(`${serving.url}/sign-in/machine/token`, { method: "POST", body });
      return JSON.parse(await res.text()).error_description ?? "exchanged";
    };
    const NOT_NAMED = "the settings of the server name no issuer of this token";
    expect([(await trust()).status, await exchange()]).toEqual([400, NOT_NAMED]);

    write({ issuer: issuer.issuer, audiences: ["chartroom"], privateAddresses: true });
    serving.process.kill("SIGHUP");
    await until(trust, ({ status }) => status === 200);
    expect(await exchange()).toBe("exchanged");

    writeFileSync(file, "{");
    serving.process.kill("SIGHUP");
    const kept = "the machine issuers were not read again: those before stay in use";
    await until(
      () => serving.log().find(({ msg }) => msg === kept),
      (line) => line !== undefined,
    );
    expect(await exchange()).toBe("exchanged");

    write(other);
    serving.process.kill("SIGHUP");
    await until(exchange, (said) => said === NOT_NAMED);
  });
});
