import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import packageJson from "../../package.json" with { type: "json" };
import { post, repository } from "../harness/call.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { addOrganization } from "../harness/organization.ts";
import { ROOT } from "../harness/program.ts";
import { type ParsedMetric, parsePrometheus } from "../harness/prometheus-text.ts";
import { startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import { runCommand, startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

const PROJECT = {
  name: "secret-name-of-a-project",
  initializer: repository("https://git.example.org/a.git"),
};
const FREE = "127.0.0.1:0";

let server: TestServer;
let url: string;
let scraped: ReadonlyMap<string, ParsedMetric>;
let text: string;

const urlOf = ({ log }: TestServer) => log().find(({ msg }) => msg === "serving metrics")?.url as string;
const scrape = async () => (await fetch(url)).text();
/** Returns the value with these labels, among others; undefined without one. */
const sampleOf = (metrics: typeof scraped, name: string, labels: object = {}) =>
  [...metrics.values()]
    .flatMap(({ samples }) => samples)
    .find(
      (each) =>
        each.name === name && Object.entries(labels).every(([key, value]) => each.labels[key] === value),
    )?.value;

beforeAll(async () => {
  const copies = temporaryFolder();
  writeFileSync(join(copies, "chartroom-20260101T000000.000Z.db"), "");
  server = await startServer({
    args: ["--metrics-address", FREE, "--backup-folder", copies, "--audit-file", join(copies, "audit.jsonl")],
  });
  url = urlOf(server);
  await post(server, "ProjectService/CreateProject", PROJECT);
  await post(server, "ProjectService/GetProject", { projectId: "019a0000-0000-7000-8000-000000000000" });
  await fetch(`${server.url}/a/path/of/nobody`, { method: "PUT" });
  await fetch(`${server.url}/sign-in`, { redirect: "manual" });
  await fetch(`${server.url}/scim/v2/Users/of-nobody`);
  await fetch(`${server.url}/mcp`, { method: "POST" });
  await startRegisteredRunner(server);
  const { url: cloned } = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
  const run = await startExecution(server, { steps: [task("true")], repository: () => cloned });
  await until(run.execution, ({ status }) => /COMPLETED/.test(status.phase));
  // What is counted in the database is fresh for some seconds.
  text = await until(scrape, (found) =>
    found.includes('chartroom_runners{chartroom_runner_state="connected"} 1'),
  );
  scraped = parsePrometheus(text);
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

describe("the metrics of a server", () => {
  test("count calls by operation and code, and requests by route and status", () => {
    const calls = (method: string, code: string) =>
      sampleOf(scraped, "rpc_server_call_duration_count", {
        rpc_method: `service.v1.ProjectService/${method}`,
        rpc_response_status_code: code,
      });
    expect([calls("CreateProject", "ok"), calls("GetProject", "not_found")]).toEqual([1, 1]);
    expect(calls("GetProject", "ok")).toBeUndefined();
    const requests = (labels: object) => sampleOf(scraped, "http_server_request_duration_count", labels);
    // It names nothing.
    const puts = scraped
      .get("http_server_request_duration")
      ?.samples.filter(({ name, labels }) => name.endsWith("_count") && labels.http_request_method === "PUT");
    expect(puts).toMatchObject([{ value: 1 }]);
    expect(puts?.[0]?.labels).not.toHaveProperty("http_route");
    // The page is no operation.
    expect(sampleOf(scraped, "rpc_server_call_duration_count", { rpc_method: "sign-in" })).toBeUndefined();
    expect(
      requests({ http_request_method: "GET", http_route: "/api/{service}/{operation}" }),
    ).toBeUndefined();
    for (const route of ["/sign-in/{path}", "/scim/v2/{path}", "/mcp"])
      expect([route, requests({ http_route: route })]).toEqual([route, 1]);
    expect(
      requests({ http_route: "/api/{service}/{operation}", http_response_status_code: "404" }),
    ).toBeGreaterThan(0);
  });

  test("count what ended, what waits, and the writes of the store", () => {
    expect(sampleOf(scraped, "chartroom_actions_ended_total", { chartroom_end: "done" })).toBe(1);
    expect(sampleOf(scraped, "chartroom_executions_ended_total", { chartroom_end: "done" })).toBe(1);
    // Prometheus sees no increase in a counter that appears with its first value.
    for (const [name, label, values] of [
      ["actions_ended", "end", ["failed", "stopped"]],
      ["executions_ended", "end", ["failed", "stopped"]],
      ["agent_executions_ended", "end", ["failed", "stopped"]],
      ["trigger_events", "verdict", ["overlap", "bad_signature", "refused"]],
      [
        "event_deliveries",
        "verdict",
        ["accepted", "refused", "unreachable", "address_refused", "unreadable"],
      ],
      ["isolation_refusals", "reason", ["not_allowed", "address_not_public", "no_address", "begun_by_fork"]],
    ] as const)
      for (const value of values)
        expect([
          name,
          value,
          sampleOf(scraped, `chartroom_${name}_total`, { [`chartroom_${label}`]: value }),
        ]).toEqual([name, value, 0]);
    expect(sampleOf(scraped, "chartroom_ready")).toBe(1);
    const age = (Date.now() - Date.UTC(2026, 0, 1)) / 1000;
    expect(sampleOf(scraped, "chartroom_backup_age")).toBeLessThanOrEqual(age);
    expect(sampleOf(scraped, "chartroom_backup_age")).toBeGreaterThan(age - 3_600);
    expect(sampleOf(scraped, "chartroom_commit_writes_count")).toBeGreaterThan(3);
    expect(sampleOf(scraped, "chartroom_commit_writes_sum")).toBeGreaterThanOrEqual(
      sampleOf(scraped, "chartroom_commit_writes_count") as number,
    );
    expect(sampleOf(scraped, "chartroom_database_size", { chartroom_database_part: "data" })).toBeGreaterThan(
      100_000,
    );
  });

  test("name nothing that an organization or a client chose", () => {
    expect(text).not.toContain(PROJECT.name);
    expect(text).not.toContain("path/of/nobody");
    expect(text).not.toContain("of-nobody");
    expect(text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/);
    expect(text).not.toContain(server.token);
  });

  test("are those of the page, with its words", () => {
    const page = readFileSync(join(ROOT, "docs/metrics.md"), "utf8");
    const named = [...page.matchAll(/^\| `(\w+)` \| (\w+) \| (.+?) \|/gm)].map(([, name, type, help]) => [
      name,
      type,
      help,
    ]);
    const served = [...scraped]
      .filter(([name]) => name !== "target_info")
      .map(([name, { type, help }]) => [name, type, help.replaceAll("`", "")]);
    expect(named.map(([name, type, help]) => [name, type, help?.replaceAll("`", "")]).toSorted()).toEqual(
      served.toSorted(),
    );
  });

  test("are shown to administrators with the checks, those of work of their organization alone", async () => {
    const health = async (own: Pick<typeof other, "organizationId" | "token">) => {
      const { body } = await post(
        server,
        "OrganizationService/GetServerHealth",
        { organizationId: own.organizationId },
        own.token,
      );
      return body;
    };
    const other = await addOrganization(server, "island");
    const { user } = (await post(server, "UserService/GetAuthenticatedUser", {})).body;
    const { organizationId } = user;
    const [ours, theirs] = [await health({ organizationId, token: server.token }), await health(other)];
    expect(ours).toMatchObject({
      ...{ version: packageJson.version, ready: true, startedAt: expect.any(String) },
      checks: ["draining", "database", "disk", "keys"].map((name) => ({ name, well: true, reason: "" })),
    });
    const page = readFileSync(join(ROOT, "docs/metrics.md"), "utf8").replaceAll("`", "");
    for (const { name, description } of [...ours.server, ...ours.organization]) {
      expect(page).toContain(`\n| ${name.replace(/(?<!eventloop_delay)_p\d\d$/, "")} |`);
      expect(page).toContain(description);
    }
    const connected = ({ organization }: typeof ours) =>
      organization.find(
        ({ name, labels }: typeof ours) =>
          name === "chartroom_runners" && labels.chartroom_runner_state === "connected",
      ).value;
    expect([connected(ours), connected(theirs)]).toEqual([1, 0]);
    const pending = ({ organization }: typeof ours) =>
      organization.filter(({ name }: typeof ours) => name === "chartroom_audit_export_pending");
    for (const each of [ours, theirs])
      expect(pending(each)).toMatchObject([{ labels: { chartroom_audit_target: "file" } }]);
    const names = new Set(ours.server.map(({ name }: typeof ours) => name));
    for (const each of [
      "chartroom_commit_duration_p99",
      "nodejs_eventloop_delay_max",
      "chartroom_backup_age",
    ])
      expect(names).toContain(each);
    // They would tell of the other organizations of the server.
    expect(
      [...names].filter((each) => /ended|trigger|deliveries|audit|rpc_|_request_/.test(String(each))),
    ).toEqual([]);
  });

  test("are served at one path, to GET", async () => {
    expect((await fetch(new URL("/", url))).status).toBe(404);
    expect((await fetch(url, { method: "POST" })).status).toBe(405);
    expect((await fetch(url)).headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect((await fetch(`${server.url}/metrics`)).status).not.toBe(200);
  });

  test("keep their form in each scrape while many call, and have counted every call", async () => {
    const counts = (found: typeof scraped) =>
      (found.get("rpc_server_call_duration")?.samples ?? [])
        .filter(({ name }) => name.endsWith("_count"))
        .map(({ labels, value }) => [JSON.stringify(labels), value] as const);
    const of = (found: typeof scraped, method: string) =>
      sampleOf(found, "rpc_server_call_duration_count", {
        rpc_method: `service.v1.ProjectService/${method}`,
        rpc_response_status_code: "ok",
      }) ?? 0;
    const before = parsePrometheus(await scrape());
    let calls = 0;
    let isOver = false;
    const callers = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        await post(server, "ProjectService/CreateProject", PROJECT);
        await post(server, "ProjectService/ListProjects", {});
        calls += 1;
      }
    });
    let last = new Map(counts(before));
    for (let scrapes = 0; scrapes < 10; scrapes++) {
      const now = new Map(counts(parsePrometheus(await scrape())));
      for (const [labels, count] of last) expect(now.get(labels)).toBeGreaterThanOrEqual(count);
      last = now;
    }
    isOver = true;
    await Promise.all(callers);
    const after = await until(
      async () => parsePrometheus(await scrape()),
      (found) => of(found, "ListProjects") === of(before, "ListProjects") + calls,
    );
    expect(of(after, "CreateProject")).toBe(of(before, "CreateProject") + calls);
  });

  test("are the same for all who ask at once", async () => {
    const all = await Promise.all(Array.from({ length: 10 }, scrape));
    for (const each of all) expect(parsePrometheus(each).size).toBe(scraped.size);
  });
});

test("a chosen address that is in use stops the start, with what to do", async () => {
  const address = new URL(url).host;
  const args = ["serve", "--port", "0", "--data-dir", temporaryFolder(), "--metrics-address", address];
  const { code, stderr } = await runCommand(args);
  expect(code).not.toBe(0);
  expect(stderr).toContain(
    `--metrics-address ${address} cannot be used (EADDRINUSE): choose another, or none`,
  );
});

test("a collector gets them by OTLP, as traces and the audit trail with the headers of a file, which nothing shows", async () => {
  const bodies: { readonly path: string; readonly type: string; readonly body: string }[] = [];
  const authorizations = new Map<string, string | undefined>();
  const collector = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    const type = req.headers["content-type"] ?? "";
    authorizations.set(req.url ?? "", req.headers.authorization);
    bodies.push({ path: req.url ?? "", type, body: Buffer.concat(chunks).toString("latin1") });
    res.end();
  });
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  const { port } = collector.address() as AddressInfo;
  const headers = join(temporaryFolder(), "headers");
  writeFileSync(headers, "Authorization: Bearer of-the-collector\n");
  const endpoints = ["--otlp-endpoint", "--otlp-traces-endpoint", "--audit-otlp-endpoint"].flatMap((flag) => [
    flag,
    `http://127.0.0.1:${port}`,
  ]);
  const other = await startServer({ args: [...endpoints, "--otlp-headers-file", headers] });
  await post(other, "ProjectService/CreateProject", PROJECT);
  await until(
    async () => [...authorizations.keys()],
    (paths) => paths.includes("/v1/logs"),
  );
  // The last ones are sent when the server stops.
  expect(await other.stop()).toBe(0);
  collector.close();
  expect(bodies.length).toBeGreaterThan(0);
  const given = "Bearer of-the-collector";
  expect([...authorizations].toSorted()).toEqual([
    ["/v1/logs", given],
    ["/v1/metrics", given],
    ["/v1/traces", given],
  ]);
  expect(JSON.stringify(other.log())).not.toContain("of-the-collector");
  // The last one, which tells of the call: one may have gone before it.
  const { path, type, body } = bodies.findLast((each) => each.path === "/v1/metrics") ?? {
    ...{ path: "", type: "", body: "" },
  };
  expect([path, type]).toEqual(["/v1/metrics", "application/x-protobuf"]);
  for (const name of ["chartroom.ready", "rpc.server.call.duration", "service.name"])
    expect(body).toContain(name);
});
