import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { blockOf, fencedBlocks } from "../harness/fenced-blocks.ts";
import { ROOT } from "../harness/program.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { testPack } from "./pack-scenarios.ts";
import { testScenarios } from "./scenarios.ts";
import { BUILD_MS, build, describeWith, environmentWith, makePack, otherTeam } from "./toolchain.ts";

const page = fencedBlocks("docs/clients.md");
const modulePage = fencedBlocks("docs/clients/go.md");

describeWith(["go"], "the Go client", () => {
  let server: TestServer;
  let folder: string;
  let env: Record<string, string | undefined>;

  beforeAll(async () => {
    server = await startServer();
    folder = otherTeam("go", blockOf(page, "Go", "yaml"));
    mkdirSync(join(folder, "firstcall"));
    const firstCall = blockOf(page, "Go", "go").replaceAll("http://127.0.0.1:8080", server.url);
    writeFileSync(join(folder, "firstcall/main.go"), firstCall);
    const programs = join(folder, "bin");
    env = { ...environmentWith(programs), GOBIN: programs };
    await build(folder, env, "go", "install", "tool");
    await build(folder, env, "buf", "generate");
    await build(folder, env, "go", "install", "./firstcall", "./overconnect", "./overgrpc");
  }, BUILD_MS);
  afterAll(stopAll);

  test("makes the first call of the page", async () => {
    expect(await build(folder, { ...env, TOKEN: server.token }, "firstcall")).toBe("hello\n");
  });

  describe("over Connect, with connect-go", () => {
    const program = () => ({ cwd: folder, env, command: ["overconnect"] as const });
    // Over HTTP/1.1 its own request ends with the connection.
    testScenarios(() => server, program, { cut: /^(unavailable|canceled)$/, checksRules: true });
  });

  describe("over gRPC, with grpc-go", () => {
    const program = () => ({ cwd: folder, env, command: ["overgrpc"] as const });
    testScenarios(() => server, program, { cut: /^Unavailable$/, checksRules: true });
  });

  describe("of the module's folder", () => {
    let pack: string;

    beforeAll(async () => {
      const packed = join(folder, "packed");
      cpSync(join(ROOT, "test/clients/packed-go"), packed, { recursive: true });
      mkdirSync(join(packed, "packedfirstcall"));
      const firstCall = blockOf(modulePage, "First call", "go").replaceAll("8080", `${server.port}`);
      writeFileSync(join(packed, "packedfirstcall/main.go"), firstCall);
      pack = await makePack("go", env, packed);
      await build(packed, env, "go", "mod", "edit", "-replace", `chartroom.example/client=${pack}`);
      await build(packed, env, "go", "install", "-ldflags=-s -w", ".", "./packedfirstcall");
    }, BUILD_MS);

    test("keeps its token, gives up, and begins again where it should", async () => {
      expect(await build(join(folder, "packed"), env, "go", "test", "-ldflags=-s -w", ".")).toMatch(/^ok /);
    });

    test("makes the first call of its page", async () => {
      const said = await build(folder, { ...env, TOKEN: server.token }, "packedfirstcall");
      expect(said).toBe("hello-go\ntrue\nERROR_REASON_NOT_FOUND\n");
    });

    test("passes its own tests: only what is new is taken of logs that come again", async () => {
      expect(await build(pack, env, "go", "test", "-v", ".")).toContain(
        "--- PASS: TestLogsGoOnBehindWhatCame",
      );
    });

    const program = () => ({ cwd: folder, env, command: ["packed"] as const });
    testPack(() => server, program);
  });
});
