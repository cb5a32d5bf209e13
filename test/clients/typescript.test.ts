import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import packageJson from "../../package.json" with { type: "json" };
import { closeAll, open, type Visit } from "../console/browser.ts";
import { post } from "../harness/call.ts";
import { blockOf, fencedBlocks } from "../harness/fenced-blocks.ts";
import { addOrganization } from "../harness/organization.ts";
import { ROOT, runProgram, terminalEnvironment } from "../harness/program.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { type Relay, startRelay } from "./relay.ts";
import { runScenario } from "./scenarios.ts";
import { BUILD_MS, build, describeWith, environmentWith } from "./toolchain.ts";

const { version } = packageJson;
const page = fencedBlocks("docs/clients/typescript.md");
const section = "From the package";

/** The machine's own Node, which may be 20, and the repository's. */
const NODES = [
  ["the machine's Node", terminalEnvironment],
  ["the repository's Node", environmentWith],
] as const;

const TYPES = join(ROOT, "node_modules/@types");

const packs = temporaryFolder();
const folder = temporaryFolder();
const origins = createServer((req, res) => {
  const file = join(folder, "dist", String(req.url).replace(/\/$/, "/index.html"));
  // Browsers ask for an icon too.
  if (!existsSync(file)) res.statusCode = 404;
  res.setHeader("content-type", file.endsWith(".html") ? "text/html" : "text/javascript");
  res.end(existsSync(file) ? readFileSync(file) : "");
});
const originUrl = () => `http://127.0.0.1:${(origins.address() as AddressInfo).port}`;
let server: HostedServer;

beforeAll(async () => {
  origins.listen(0, "127.0.0.1");
  await once(origins, "listening");
  server = await startHostedServer({ args: ["--cors-origins", originUrl()] });
  await build(ROOT, environmentWith(), "node", "scripts/packs/pack.ts", "--to", packs);
  cpSync(join(ROOT, "test/clients/typescript"), folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
  const made = ["api", "client"].map((name) => join(packs, `chartroom-${name}-${version}.tgz`));
  await build(folder, terminalEnvironment(), "npm", "install", ...options, ...made);
}, BUILD_MS);
afterAll(async () => {
  origins.close();
  await Promise.all([closeAll(), stopAll()]);
});

const installed = (name: string) => join(folder, "node_modules/@chartroom", name);

describe("the packs", () => {
  test("have the version of the server in their names and in themselves", () => {
    expect(readdirSync(packs).sort()).toEqual([
      `chartroom-api-${version}.tgz`,
      `chartroom-client-${version}.tgz`,
      `chartroom-protos-${version}.tar.gz`,
    ]);
    const manifest = (name: string) =>
      JSON.parse(readFileSync(join(installed(name), "package.json"), "utf8"));
    expect([manifest("api").version, manifest("client").version]).toEqual([version, version]);
    expect(manifest("client").dependencies["@chartroom/api"]).toBe(version);
  });

  test("hold no TypeScript but declarations, one for each module, and name nothing of this repository", () => {
    for (const name of ["api", "client"]) {
      const files = readdirSync(installed(name), { recursive: true, encoding: "utf8" });
      const declared = files.filter((file) => file.endsWith(".d.ts")).map((file) => file.slice(0, -5));
      const modules = files.filter((file) => file.endsWith(".js")).map((file) => file.slice(0, -3));
      expect(declared.sort()).toEqual(modules.sort());
      expect(modules.length).toBeGreaterThan(0);
      const code = files.filter((file) => /\.[jt]s$/.test(file));
      expect(code.filter((file) => file.endsWith(".ts") && !file.endsWith(".d.ts"))).toEqual([]);
      const foreign = /from "(#|\.\.\/\.\.\/api|[^"]*[^d]\.ts")/;
      expect(code.filter((file) => foreign.test(readFileSync(join(installed(name), file), "utf8")))).toEqual(
        [],
      );
    }
  });

  test("have the contract: the archive of the .proto files makes the descriptors of the package", async () => {
    const contract = join(folder, "chartroom");
    mkdirSync(contract);
    const archive = join(packs, `chartroom-protos-${version}.tar.gz`);
    execFileSync("tar", ["-xzf", archive, "-C", contract, "--strip-components=1"]);
    const options = ["build", "proto", "--exclude-source-info", "-o", "own.binpb"];
    for (const from of [contract, installed("api")]) await build(from, environmentWith(), "buf", ...options);
    const published = readFileSync(join(installed("api"), "contract.binpb"));
    expect(published.equals(readFileSync(join(contract, "own.binpb")))).toBe(true);
    expect(published.equals(readFileSync(join(installed("api"), "own.binpb")))).toBe(true);
  });

  test.each(["nodenext", "bundler"])(
    "have types that hold for the first call, resolved as by %s",
    async (how) => {
      writeFileSync(join(folder, "first-call.ts"), blockOf(page, section, "js"));
      const strict = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022"];
      const resolution =
        how === "bundler" ? ["--module", "esnext", "--moduleResolution", how] : ["--module", how];
      const options = [...strict, ...resolution, "--typeRoots", TYPES, "--types", "node", "first-call.ts"];
      expect(await build(folder, environmentWith(), "tsc", ...options)).toBe("");
    },
  );
});

/** The results of the scenarios, which are the same everywhere. */
function testResults(run: (scenario: string) => Promise<{ readonly [field: string]: unknown }>): void {
  test("creates a project", async () => {
    expect(await run("create")).toMatchObject({ name: "created" });
  });

  test("walks a list over three pages, and element by element", async () => {
    const pages = [["listed-0", "listed-1"], ["listed-2", "listed-3"], ["listed-4"]];
    expect(await run("list")).toMatchObject({ pages, all: pages.flat() });
  });

  test("reads the reason and the violations of an error, and finds these itself", async () => {
    const violations = [{ field: "project_id", ruleId: "string.uuid", message: "must be a valid UUID" }];
    expect(await run("error")).toMatchObject({
      code: "InvalidArgument",
      isViolation: true,
      violations,
      ownViolations: violations,
    });
  });

  test("resumes a stream that was cut, without a loss and without a repetition", async () => {
    const { events, projects, interruptions } = (await run("stream")) as {
      events: { sequence: number; resourceId: string }[];
      projects: string[];
      interruptions: number;
    };
    const sequences = events.map(({ sequence }) => sequence);
    expect(sequences).toEqual([...new Set(sequences)].toSorted((one, other) => one - other));
    expect(events.map(({ resourceId }) => resourceId).filter((id) => projects.includes(id))).toEqual(
      projects,
    );
    expect(interruptions).toBe(1);
  });

  test("is freed by its deadline", async () => {
    expect(await run("deadline")).toMatchObject({ code: "DeadlineExceeded" });
  });

  test("asks for the version of the server", async () => {
    expect(await run("version")).toMatchObject({ name: "chartroom", version });
  });
}

describe.each(NODES)("the client of the pack in %s", (_, environmentOf) => {
  test("makes the first call of the page", async () => {
    const text = blockOf(page, section, "js").replaceAll("http://127.0.0.1:8080", server.url);
    writeFileSync(join(folder, "first-call.mjs"), text);
    const { token } = await addOrganization(server, "A team with a client");
    const env = { ...environmentOf(), TOKEN: token };
    const { code, stdout, stderr } = await runProgram("node", ["first-call.mjs"], { cwd: folder, env });
    expect([stderr, code, stdout]).toEqual(["", 0, "hello\nhello\nNOT_FOUND\n"]);
  });

  testResults(async (scenario) => {
    const program = { cwd: folder, env: environmentOf(), command: ["node", "scenarios.mjs"] as const };
    return (await runScenario(server, program, scenario)).result;
  });
});

describeWith(["chromium"], "the client of the pack in a page of another origin", () => {
  let visit: Visit;
  let relay: Relay;

  const bundle = (from: string, to: string) => {
    const options = ["--base", "./", "--logLevel", "warn"];
    return build(folder, environmentWith(), "vite", "build", from, "--outDir", `../${to}`, ...options);
  };

  beforeAll(async () => {
    await bundle("page", "dist");
    relay = await startRelay(server.port);
    visit = await open({ url: relay.url });
    await visit.page.exposeFunction("onWatching", () => relay.cut());
    await visit.page.goto(`${originUrl()}/`);
    await visit.page.waitForFunction("globalThis.runScenario");
  }, BUILD_MS);
  afterAll(async () => {
    await relay.stop();
  });

  testResults(async (scenario) => {
    const { token } = await addOrganization(server, "A team with a page");
    const call = [relay.url, token, scenario].map((argument) => JSON.stringify(argument)).join();
    return visit.page.evaluate(`globalThis.runScenario(${call})`);
  });

  test("lists projects in the page of the docs, as they are and as they come", async () => {
    mkdirSync(join(folder, "docs"));
    const html = blockOf(page, section, "html").replaceAll("http://127.0.0.1:8080", server.url);
    writeFileSync(join(folder, "docs/index.html"), html);
    await bundle("docs", "dist/docs");
    const { token } = await addOrganization(server, "A team that looks at a page");
    const create = (name: string) => {
      const git = { remoteUri: `https://git.example.org/team/${name}.git` };
      return post(server, "ProjectService/CreateProject", { initializer: { specs: [{ git }] } }, token);
    };
    await create("before");
    const { page: tab } = visit;
    tab.once("dialog", (dialog) => void dialog.accept(token));
    await tab.goto(`${originUrl()}/docs/`);
    await tab.getByText("before").waitFor();
    await create("after");
    await tab.getByText("after").waitFor();
    expect(await tab.locator("li").allTextContents()).toEqual(["before", "after"]);
  });

  test("has no fault", () => {
    expect(visit.faults).toEqual([]);
  });
});
