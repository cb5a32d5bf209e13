/**
 * Makes the Maven module from the contract and packages/java, as a folder that is a Maven repository.
 *
 *   npm run pack:java -- --to FOLDER
 *   npm run pack:java -- --to FOLDER --compiled CLASSES   takes the contract's classes from a folder, as an earlier build left them
 *
 * Takes the `mvn`, `java` and `jar` of the PATH (docs/clients/java.md).
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type PackService, ROOT, readServices } from "./contract.ts";

const { values: flags } = parseArgs({
  options: { to: { type: "string", default: "release" }, compiled: { type: "string" } },
});
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
/** How Maven's artifacts name this machine. */
const platform = [
  process.platform === "darwin" ? "osx" : process.platform,
  process.arch === "arm64" ? "aarch_64" : "x86_64",
].join("-");
const scratch = mkdtempSync(join(tmpdir(), "chartroom-java-"));
try {
  cpSync(join(ROOT, "packages/java"), scratch, { recursive: true });
  const manifest = join(scratch, "pom.xml");
  const text = readFileSync(manifest, "utf8").replace("<version>0.0.0<", `<version>${version}<`);
  writeFileSync(manifest, text);
  const services = join(scratch, "src/main/java/chartroom/client/Services.java");
  writeFileSync(services, servicesClass(readServices(ROOT)));
  const classes = join(scratch, "target/classes");
  if (flags.compiled === undefined) generateMessages();
  else cpSync(flags.compiled, classes, { recursive: true });
  run("mvn", "--quiet", "--batch-mode", "compile");
  cpSync(join(ROOT, "LICENSE"), join(classes, "META-INF/LICENSE"));
  process.stdout.write(`${putIntoRepository(classes, manifest)}\n`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function run(program: string, ...args: string[]): void {
  const PATH = [join(scratch, "generators"), process.env.PATH].join(delimiter);
  const env = { ...process.env, PATH };
  execFileSync(program, args, { cwd: scratch, env, stdio: ["ignore", "ignore", "inherit"] });
}

/** Generates the messages and the stubs of gRPC by the generators that the pom pins. */
function generateMessages(): void {
  run("mvn", "--quiet", "--batch-mode", `-Dgenerators.platform=${platform}`, "dependency:copy@generators");
  for (const name of ["protoc", "protoc-gen-grpc-java"]) chmodSync(join(scratch, "generators", name), 0o755);
  const template = {
    version: "v2",
    managed: {
      enabled: true,
      disable: [{ file_option: "java_package", path: "service/v1" }],
      override: [{ file_option: "java_package", path: "buf/validate", value: "build.buf.validate" }],
    },
    inputs: [{ directory: join(ROOT, "proto"), paths: [join(ROOT, "proto/service")] }],
    plugins: [
      { protoc_builtin: "java", out: "src/main/java" },
      { local: "protoc-gen-grpc-java", out: "src/main/java", opt: "@generated=omit" },
    ],
  };
  run(join(ROOT, "node_modules/.bin/buf"), "generate", "--template", JSON.stringify(template));
}

/** Packs classes and sources and returns the folder of the repository. */
function putIntoRepository(classes: string, manifest: string): string {
  const repository = join(resolve(flags.to), `chartroom-maven-${version}`);
  const folder = join(repository, "chartroom/chartroom-client", version);
  rmSync(repository, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const artifact = join(folder, `chartroom-client-${version}`);
  run("jar", "--create", "--file", `${artifact}.jar`, "-C", classes, ".");
  run("jar", "--create", "--file", `${artifact}-sources.jar`, "-C", join(scratch, "src/main/java"), ".");
  cpSync(manifest, `${artifact}.pom`);
  for (const file of [`${artifact}.jar`, `${artifact}-sources.jar`, `${artifact}.pom`]) {
    writeFileSync(`${file}.sha1`, createHash("sha1").update(readFileSync(file)).digest("hex"));
  }
  return repository;
}

/** Returns the class with a method for each service. */
function servicesClass(services: readonly PackService[]): string {
  const named = services.map(({ name, words, comment }) => {
    const [first = "", ...others] = words;
    const method =
      first + others.map((word) => word.replace(/^./, (letter) => letter.toUpperCase())).join("");
    return { method, grpc: `${name}Grpc`, stub: `${name}Grpc.${name}BlockingStub`, comment };
  });
  return `// Made by the build of the module.
package chartroom.client;

${named.map(({ grpc }) => `import chartroom.service.v1.${grpc};`).join("\n")}
import io.grpc.Channel;
import io.grpc.ClientInterceptor;
import io.grpc.ClientInterceptors;

/** The services of the contract. */
public abstract class Services {
  /** The version of the module, which is that of the server. */
  public static final String VERSION = "${version}";

  private final Channel channel;
${named.map(({ method, stub }) => `  private final ${stub} ${method};`).join("\n")}

  Services(Channel plain, ClientInterceptor calls) {
    channel = ClientInterceptors.intercept(plain, calls);
${named.map(({ method, grpc }) => `    ${method} = ${grpc}.newBlockingStub(channel);`).join("\n")}
  }

  /** Returns the channel that makes the client's calls, for stubs of other kinds. */
  public final Channel channel() {
    return channel;
  }
${named
  .map(
    ({ method, stub, comment }) => `
  /**
${comment.replaceAll("*/", "* /").replaceAll(/^/gm, "   * ")}
   */
  public final ${stub} ${method}() {
    return ${method};
  }
`,
  )
  .join("")}}
`;
}
