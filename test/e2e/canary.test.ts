import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { testOnSqlite } from "../harness/engine.ts";
import { postgresUrl } from "../harness/postgres-database.ts";
import { withRawData } from "../harness/raw-data.ts";
import { runCommand, startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { storedTexts } from "../harness/stored-texts.ts";

const SERVICE = "RunnerConfigurationService";
const HOUR_MS = 3_600_000;
/** Is in a project's name, so that the search is known to find what is there. */
const CONTROL = `control-${randomBytes(12).toString("hex")}`;

/** Every secret that was planted. */
const canaries = new Set<string>();
/** Everything that came back, by what was asked; an answer that issues a secret is here without it. */
const answers: [string, string][] = [];

let server: TestServer;
let runnerId: string;
beforeAll(async () => {
  server = await startServer();
  ({ runnerId } = (await json("RunnerService/CreateRunner", { name: "In the attic" })).runner);
  await json("ProjectService/CreateProject", {
    name: CONTROL,
    initializer: { specs: [{ git: { remoteUri: "https://git.example.org/a" } }] },
  });
});
afterAll(stopAll);

/** A new secret: letters and digits only, so that it is the same in every encoding. */
function plant(): string {
  const canary = `canary${randomBytes(12).toString("hex")}`;
  canaries.add(canary);
  return canary;
}

/** Sends a body as it is, and keeps all that comes back. */
async function send(
  operation: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
  path = `/api/service.v1.${operation}`,
) {
  const res = await fetch(server.url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${server.token}`,
      "content-type": "application/json",
      ...headers,
    },
    body,
  });
  const text = await res.text();
  const whole = `${JSON.stringify([...res.headers])}\n${text}`;
  answers.push([operation, whole]);
  return { status: res.status, text };
}

async function json(operation: string, body: object, headers: Readonly<Record<string, string>> = {}) {
  const { status, text } = await send(operation, JSON.stringify(body), headers);
  expect([operation, status, text]).toEqual([operation, 200, text]);
  return JSON.parse(text);
}

/** Calls an operation that issues a secret, and repeats it under its key: only the first answer has the secret. */
async function issue(
  operation: string,
  body: object,
  field: string,
  form = /^cr_(pat|sat|exc)_\w{36}$/,
): Promise<void> {
  const headers = { "idempotency-key": v7() };
  const issued = (await json(operation, body, headers))[field];
  expect(issued).toMatch(form);
  canaries.add(issued);
  // What the prefix only announces.
  canaries.add(issued.replace(/^whsec_/, ""));
  const [, whole = ""] = answers.at(-1) ?? [];
  answers[answers.length - 1] = [operation, whole.replace(issued, "")];
  expect((await json(operation, body, headers))[field]).toBe("");
}

const hostToken = (body: object) => ({
  ...{ runnerId, host: `${v7()}.example.org`, token: plant(), refreshToken: plant() },
  ...body,
});
const create = (body: object, headers?: Record<string, string>) =>
  json(`${SERVICE}/CreateHostAuthenticationToken`, hostToken(body), headers);

/** Sends what must be refused. */
async function refused(operation: string, body: string | object, headers?: Record<string, string>) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const { status } = await send(operation, text, headers);
  expect([operation, status >= 400]).toEqual([operation, true]);
}

/** Which canaries are in some bytes, as they are or in a common other form. */
function found(bytes: Buffer | string): string[] {
  const text = typeof bytes === "string" ? bytes : bytes.toString("latin1");
  return [...canaries].filter((canary) => {
    const raw = Buffer.from(canary);
    // Base64 ends differently by what follows; the part before that is the same.
    const base64 = raw.toString("base64").slice(0, 24);
    return [canary, raw.toString("hex"), base64].some((form) => text.includes(form));
  });
}

/** The secrets that are stored, each with the file or table where it is. */
const foundInData = async (dataDir: string) =>
  [...(await storedTexts(dataDir))].flatMap(([place, text]) => found(text).map((canary) => [place, canary]));

describe("secrets that are planted", () => {
  test("as credentials: created, repeated, replaced, changed, removed and refused", async () => {
    for (let at = 0; at < 8; at++) {
      const request = hostToken({});
      const headers = { "idempotency-key": v7() };
      const first = await json(`${SERVICE}/CreateHostAuthenticationToken`, request, headers);
      expect(await json(`${SERVICE}/CreateHostAuthenticationToken`, request, headers)).toEqual(first);
      await create({ host: request.host });
    }
    const { token } = await create({});
    for (let at = 0; at < 5; at++) {
      const update = { id: token.id, token: plant(), refreshToken: plant() };
      await json(`${SERVICE}/UpdateHostAuthenticationToken`, update, { "idempotency-key": v7() });
    }
    const past = new Date(Date.now() - HOUR_MS).toISOString();
    for (const body of [
      { runnerId: v7() },
      { expiresAt: past },
      { subject: { id: v7(), principal: "PRINCIPAL_USER" } },
      { scopes: Array.from({ length: 102 }, () => "x") },
      { host: "" },
    ]) {
      await refused(`${SERVICE}/CreateHostAuthenticationToken`, hostToken(body));
    }
    await refused(`${SERVICE}/UpdateHostAuthenticationToken`, { id: v7(), token: plant() });
    await json(`${SERVICE}/GetHostAuthenticationToken`, { id: token.id });
    await json(`${SERVICE}/ListHostAuthenticationTokens`, { pagination: { pageSize: 100 } });
    await json(`${SERVICE}/DeleteHostAuthenticationToken`, { id: token.id });
  });

  test("as tokens of every kind that operations issue", async () => {
    const validUntil = "2999-12-31T00:00:00Z";
    const { serviceAccount } = await json("ServiceAccountService/CreateServiceAccount", {
      ...{ name: "Nightly", validUntil },
    });
    for (let at = 0; at < 5; at++) {
      await issue("UserService/CreatePersonalAccessToken", { description: "a laptop" }, "token");
      await issue(
        "ServiceAccountService/CreateServiceAccountToken",
        { serviceAccountId: serviceAccount.id },
        "token",
      );
      await issue("RunnerService/CreateRunnerToken", { runnerId }, "exchangeToken");
      await issue("RunnerService/CreateRunner", { name: `Runner ${at}` }, "exchangeToken");
    }
    const { stdout } = await runCommand(["token", "create", "--data-dir", server.dataDir]);
    canaries.add(stdout.trim());
    canaries.add(server.token);
  });

  test("as secrets of webhooks, which are answered to who may set them at the sender", async () => {
    const action = { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ task: { command: "true" } }] };
    for (let at = 0; at < 5; at++) {
      const { workflow } = await json("WorkflowService/CreateWorkflow", { name: `Nightly ${at}`, action });
      for (const operation of ["GetWorkflowWebhookSecret", "RotateWorkflowWebhookSecret"]) {
        await issue(
          `WorkflowService/${operation}`,
          { workflowId: workflow.id },
          "secret",
          /^whsec_[\w+/]{43}=$/,
        );
      }
      await json("WorkflowService/UpdateWorkflow", { workflowId: workflow.id, description: "changed" });
    }
    await json("WorkflowService/ListWorkflows", {});
  });

  test("in wrong places of a body", async () => {
    const name = `${SERVICE}/CreateHostAuthenticationToken`;
    const good = { runnerId, host: "git.example.org" };
    for (const body of [
      { ...good, secret: plant() },
      { ...good, credentials: { token: plant() } },
      { ...good, [plant()]: "x" },
      { ...good, token: [plant()] },
      { ...good, token: { value: plant() } },
      { ...good, token: "x", source: plant() },
      { ...good, token: "x", scopes: plant() },
      { ...good, token: "x", scopes: { [plant()]: true } },
      { ...good, token: "x", subject: plant() },
      { ...good, token: "x", subject: { principal: plant() } },
      { ...good, token: "x", expiresAt: plant() },
      { ...good, token: "x", integrationId: plant() },
      { ...good, token: "x", runnerId: plant() },
      { ...good, token: "x", userId: plant() },
      { ...good, token: plant().repeat(600) },
      { ...good, token: "x", refreshToken: plant().repeat(600) },
      { ...good, token: "x", host: plant().repeat(10) },
      { ...good, token: "x", scopes: [plant().repeat(10)] },
      { ...good, token: Number.parseInt(randomDigits(), 10) },
    ]) {
      await refused(name, body);
    }
    for (const text of [
      `{"token": ${plant()}}`,
      `{"token": "${plant()}"`,
      `{"token": '${plant()}'}`,
      `{"token": "${plant()}" "host": "x"}`,
      `{"token": "${plant()}\n"}`,
      `{"token": "🗝", "refreshToken": ${plant()}}`,
      `{"${plant()}": 1, "${plant()}": 2`,
      `"${plant()}"`,
      plant(),
    ]) {
      await refused(name, text);
    }
    const twice = plant();
    await refused(name, `{"${twice}": 1, "${twice}": 2}`);
    await refused("ProjectService/ListProjects", { pagination: { token: plant() } });
    await refused("ProjectService/ListProjects", { pagination: { pageSize: plant() } });
    await refused("ProjectService/UpdateProject", { projectId: plant() });
    await refused("ProjectService/CreateProject", { annotations: { [plant()]: 7 } });
    await refused(name, plant(), { "content-type": "application/proto" });
    await refused(name, plant(), { "content-encoding": "gzip" });
  });

  test("in headers and paths", async () => {
    const list = "ProjectService/ListProjects";
    for (const headers of [
      { authorization: `Bearer ${plant()}` },
      { authorization: plant() },
      { "content-type": `application/${plant()}` },
      { "content-encoding": plant() },
      { "connect-timeout-ms": plant() },
    ] as Record<string, string>[]) {
      await refused(list, "{}", headers);
    }
    for (const name of ["x-request-id", "cookie", "user-agent", "origin", "referer", "x-token"]) {
      await send(list, "{}", { [name]: plant() });
    }
    for (const path of [
      `/${plant()}`,
      `/api/${plant()}`,
      `/api/service.v1.ProjectService/${plant()}`,
      `/api/service.v1.ProjectService/ListProjects/${plant()}`,
      `/${encodeURIComponent(server.token)}`,
    ]) {
      const { status } = await send(list, "{}", {}, path);
      expect(status).toBe(404);
    }
    await send(list, "{}", {}, `/api/service.v1.${list}?token=${plant()}`);
    await send(list, "{}", {}, `/nothing?token=${plant()}`);
  });

  test("are 100 and more", () => {
    expect(canaries.size).toBeGreaterThan(100);
  });
});

describe("none of them is in", () => {
  test("an answer, except the one that issued it", async () => {
    let token = "";
    do {
      const page = await json("EventService/ListAuditLogs", { pagination: { pageSize: 100, token } });
      ({ nextToken: token } = page.pagination);
    } while (token !== "");
    expect(answers.length).toBeGreaterThan(100);
    expect(answers.filter(([, whole]) => found(whole).length > 0)).toEqual([]);
  });

  test("what is stored, while the server runs", async () => {
    const texts = await storedTexts(server.dataDir);
    const files = ["chartroom.db", "chartroom.db-wal", "chartroom.db-shm"];
    const places =
      postgresUrl() === undefined ? files.map((name) => join(server.dataDir, name)) : ["project"];
    expect([...texts.keys()]).toEqual(expect.arrayContaining(places));
    expect(await foundInData(server.dataDir)).toEqual([]);
    expect([...texts.values()].join("")).toContain(CONTROL);
  });

  test("a backup", async () => {
    const file = join(temporaryFolder(), "backup");
    const backup = await runCommand(["backup", file, "--data-dir", server.dataDir]);
    expect(backup).toMatchObject({ code: 0, stderr: "" });
    expect(found(readFileSync(file))).toEqual([]);
    expect(readFileSync(file).toString("latin1")).toContain(CONTROL);
  });

  testOnSqlite("it copies the file")("a copy", async () => {
    const file = join(temporaryFolder(), "copy.db");
    await withRawData(server.dataDir, (raw) => raw.run(`vacuum into '${file}'`));
    expect(found(readFileSync(file))).toEqual([]);
    expect(readFileSync(file).toString("latin1")).toContain(CONTROL);
  });

  test("the log, and none in the data folder once the server has stopped and the keys have rotated", async () => {
    await server.stop();
    expect(server.log().length).toBeGreaterThan(100);
    expect(found(server.logText())).toEqual([]);
    expect(await foundInData(server.dataDir)).toEqual([]);
    const { code, stdout, stderr } = await runCommand(["keys", "rotate", "--data-dir", server.dataDir]);
    expect([code, found(stdout + stderr)]).toEqual([0, []]);
    expect(await foundInData(server.dataDir)).toEqual([]);
  });
});

/** A secret of digits, such as a PIN that is long. */
function randomDigits(): string {
  const digits = `9${Array.from(randomBytes(14), (byte) => byte % 10).join("")}`;
  canaries.add(digits);
  return digits;
}
