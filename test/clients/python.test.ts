import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { blockOf, fencedBlocks } from "../harness/fenced-blocks.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { testPack } from "./pack-scenarios.ts";
import { testScenarios } from "./scenarios.ts";
import {
  BUILD_MS,
  build,
  describeWith,
  environmentWith,
  installWheel,
  makePack,
  otherTeam,
  pythonPrograms,
} from "./toolchain.ts";

const page = fencedBlocks("docs/clients.md");
const packagePage = fencedBlocks("docs/clients/python.md");

describeWith(["python3"], "the Python client", () => {
  let server: TestServer;
  let folder: string;
  let env: Record<string, string | undefined>;

  beforeAll(async () => {
    server = await startServer();
    folder = otherTeam("python", blockOf(page, "Python", "yaml"));
    env = environmentWith(await pythonPrograms(join(folder, "requirements.txt")));
    const firstCall = blockOf(page, "Python", "python");
    writeFileSync(
      join(folder, "first_call.py"),
      firstCall.replaceAll("127.0.0.1:8080", `127.0.0.1:${server.port}`),
    );
    await build(folder, env, "buf", "generate");
    await build(folder, env, "bash", "-e", "-c", blockOf(page, "Python", "sh"));
  }, BUILD_MS);
  afterAll(stopAll);

  test("makes the first call of the page", async () => {
    const token = { TOKEN: server.token };
    expect(await build(folder, { ...env, ...token }, "python3", "first_call.py")).toBe("hello\n");
  });

  describe("over gRPC, with grpcio", () => {
    const program = () => ({ cwd: folder, env, command: ["python3", "over_grpc.py"] as const });
    testScenarios(() => server, program, { cut: /^UNAVAILABLE$/, checksRules: true });
  });

  describe("over plain HTTP, with the standard library", () => {
    const program = () => ({ cwd: folder, env, command: ["python3", "over_http.py"] as const });
    testScenarios(() => server, program, {
      cut: /^(ConnectionResetError|ConnectionError|IncompleteRead)$/,
      checksRules: false,
    });
  });

  describe("of the wheel", () => {
    let packed: Record<string, string | undefined>;

    beforeAll(async () => {
      const programs = await pythonPrograms(join(folder, "requirements.txt"));
      const wheel = await makePack("python", env, join(folder, "wheels"));
      packed = environmentWith(await installWheel(programs, wheel, join(folder, "packed")));
    }, BUILD_MS);

    test("makes the first call of its page", async () => {
      const firstCall = blockOf(packagePage, "First call", "python").replaceAll("8080", `${server.port}`);
      writeFileSync(join(folder, "packed_first_call.py"), firstCall);
      const token = { TOKEN: server.token };
      const said = await build(folder, { ...packed, ...token }, "python3", "packed_first_call.py");
      expect(said).toBe("hello-python\nTrue\nnot_found NOT_FOUND {'resource': 'project'}\n");
    });

    test("takes only what is new of logs that come again, cut elsewhere or of another attempt", async () => {
      expect(JSON.parse(await build(folder, packed, "python3", "places.py"))).toEqual({
        new: [
          ["cd", 2, 0],
          ["ef", 4, 0],
          ["j", 9, 3],
          ["x", 0, 0],
          ["ab", 0, 0],
        ],
        // That of the first attempt would hold for the second.
        afterOffset: 0,
      });
    });

    test("keeps its token, and sees where streams and connections end", async () => {
      await build(folder, packed, "python3", "-m", "unittest", "test_package");
    });

    describe.each(["http", "grpc"] as const)("over %s", (transport) => {
      const program = () => ({
        cwd: folder,
        env: packed,
        command: ["python3", "packed.py", transport] as const,
      });
      testPack(() => server, program);
    });
  });
});
