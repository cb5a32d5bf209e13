import { readFileSync, writeFileSync } from "node:fs";
import { arch, platform } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { blockOf, fencedBlocks } from "../harness/fenced-blocks.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { testScenarios } from "./scenarios.ts";
import { BUILD_MS, build, describeWith, environmentWith, otherTeam } from "./toolchain.ts";

const page = fencedBlocks("docs/clients.md");
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
  const java = (main: string) => {
    const classpath = readFileSync(join(folder, "classpath.txt"), "utf8").trim();
    return ["java", "-Xmx256m", "-cp", `target/classes${delimiter}${classpath}`, main] as const;
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
});
