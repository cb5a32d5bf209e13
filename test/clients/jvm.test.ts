import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { arch, homedir, platform } from "node:os";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { blockOf, fencedBlocks } from "../harness/fenced-blocks.ts";
import { ROOT } from "../harness/program.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { testPack } from "./pack-scenarios.ts";
import { testScenarios } from "./scenarios.ts";
import { BUILD_MS, build, describeWith, environmentWith, makePack, otherTeam } from "./toolchain.ts";

const page = fencedBlocks("docs/clients.md");
const modulePage = fencedBlocks("docs/clients/java.md");
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const SECTION = "Kotlin and Java";

/** How Maven's artifacts name this machine. */
const generatorsPlatform = [
  platform() === "darwin" ? "osx" : platform(),
  arch() === "arm64" ? "aarch_64" : "x86_64",
].join("-");

describeWith(["java", "mvn"], "the clients on the Java platform", () => {
  let server: TestServer;
  let folder: string;
  let env: Record<string, string | undefined>;
  const java = (main: string, project = "") => {
    const classpath = readFileSync(join(folder, project, "classpath.txt"), "utf8").trim();
    const classes = join(folder, project, "target/classes");
    return ["java", "-Xmx256m", "-cp", `${classes}${delimiter}${classpath}`, main] as const;
  };

  beforeAll(async () => {
    server = await startServer();
    folder = otherTeam("jvm", blockOf(page, SECTION, "yaml"));
    const atServer = (code: string) => code.replaceAll("8080", `${server.port}`);
    writeFileSync(join(folder, "src/main/java/FirstCall.java"), atServer(blockOf(page, SECTION, "java")));
    writeFileSync(join(folder, "src/main/kotlin/FirstCall.kt"), atServer(blockOf(page, SECTION, "kotlin")));
    env = { MAVEN_OPTS: "-Xmx900m", ...environmentWith(join(folder, "generators")) };
    const maven = ["mvn", "--quiet", "--batch-mode", `-Dgenerators.platform=${generatorsPlatform}`] as const;
    await build(folder, env, ...maven, "dependency:copy@generators");
    await build(folder, env, "bash", "-e", "-c", blockOf(page, SECTION, "sh"));
    await build(folder, env, "buf", "generate");
    const classpath = ["dependency:build-classpath", "-Dmdep.outputFile=classpath.txt"];
    await build(folder, env, ...maven, "compile", ...classpath);
  }, BUILD_MS);
  afterAll(stopAll);

  test.each(["FirstCall", "FirstCallKt"])("make the first call of the page: %s", async (main) => {
    expect(await build(folder, { ...env, TOKEN: server.token }, ...java(main))).toBe("hello\n");
  });

  describe("over gRPC, with grpc-java", () => {
    const program = () => ({ cwd: folder, env, command: java("GrpcClient") });
    testScenarios(() => server, program, { cut: /^UNAVAILABLE$/, checksRules: true });
  });

  describe("over Connect, with connect-kotlin", () => {
    const program = () => ({ cwd: folder, env, command: java("ConnectClientKt") });
    // OkHttp's own errors have no code.
    testScenarios(() => server, program, { cut: /^(unavailable|unknown)$/, checksRules: false });
  });

  describe("of the module", () => {
    beforeAll(async () => {
      // To compile the contract another time would take half a minute.
      const compiled = join(folder, "compiled");
      cpSync(join(folder, "target/classes/chartroom/service"), join(compiled, "chartroom/service"), {
        recursive: true,
        // Those of Connect in Kotlin are not in the module.
        filter: (path) => !/ServiceClient(Interface)?(\$.*)?\.class$/.test(path),
      });
      const repository = await makePack("java", env, join(folder, "packs"), "--compiled", compiled);
      // Maven never asks again for a release that it has.
      const kept = join(homedir(), ".m2/repository/chartroom/chartroom-client");
      rmSync(kept, { recursive: true, force: true });
      const packed = join(folder, "packed");
      cpSync(join(ROOT, "test/clients/packed-jvm"), packed, { recursive: true });
      mkdirSync(join(packed, "src/main/java"));
      const firstCall = blockOf(modulePage, "First call", "java").replaceAll("8080", `${server.port}`);
      writeFileSync(join(packed, "src/main/java/FirstCall.java"), firstCall);
      const from = [`-Dchartroom.repository=${pathToFileURL(repository)}`, `-Dchartroom.version=${version}`];
      const classpath = ["dependency:build-classpath", "-Dmdep.outputFile=classpath.txt"];
      await build(packed, env, "mvn", "--quiet", "--batch-mode", ...from, "compile", ...classpath);
    }, BUILD_MS);

    test("makes the first call of its page, in Java", async () => {
      const said = await build(folder, { ...env, TOKEN: server.token }, ...java("FirstCall", "packed"));
      expect(said).toBe("hello-java\ntrue\nERROR_REASON_NOT_FOUND\n");
    });

    describe("in Kotlin", () => {
      const program = () => ({ cwd: folder, env, command: java("PackedClientKt", "packed") });
      testPack(() => server, program);
    });
  });
});
