import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ROOT } from "../harness/program.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { BUILD_MS, build, describeWith, environmentWith, pythonPrograms } from "./toolchain.ts";

/** Operations that are called with values made from the document: a list, one that creates, and one without fields. */
const PROBED = [
  "ProjectService_ListProjects",
  "ProjectService_CreateProject",
  "IdentityService_GetAuthenticatedIdentity",
];

/** Operations that could end the access of the account that probes. */
const ENDING = /RevokeSession|RemoveMember|LeaveOrganization|BlockAccount/;

const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_schema_conformance",
];

describeWith(["python3"], "what is made from /openapi.json", () => {
  let server: HostedServer;
  let folder: string;
  let env: Record<string, string | undefined>;

  beforeAll(async () => {
    server = await startHostedServer();
    folder = temporaryFolder();
    cpSync(join(ROOT, "test/clients/openapi"), folder, { recursive: true });
    env = environmentWith(await pythonPrograms(join(folder, "requirements.txt")));
    const document = await fetch(`${server.url}/openapi.json`);
    writeFileSync(join(folder, "openapi.json"), await document.text());
  }, BUILD_MS);
  afterAll(stopAll);

  test("a generated client makes calls, repeats one by its key, and reads the reason of a failure", async () => {
    // Hooks would format what is generated.
    writeFileSync(join(folder, "config.yaml"), "post_hooks: []\n");
    const options = ["--output-path", "client", "--meta", "none", "--config", "config.yaml"];
    const from = ["generate", "--path", "openapi.json", "--fail-on-warning"];
    await build(folder, env, "openapi-python-client", ...from, ...options);
    const token = { TOKEN: server.token };
    const said = await build(folder, { ...env, ...token }, "python3", "generated.py", `${server.url}/api`);
    expect(JSON.parse(said)).toEqual({
      isSameWithItsKey: true,
      names: ["one", "two"],
      refused: ["not_found", "ERROR_REASON_NOT_FOUND"],
      createdIn: expect.any(Number),
    });
  });

  /** Has schemathesis call operations; fails with its report when an answer is none that the document describes. */
  const probe = (...args: string[]) =>
    build(
      folder,
      env,
      ...["schemathesis", "--no-color", "run", "openapi.json"],
      ...["--url", `${server.url}/api`, "--header", `Authorization: Bearer ${server.token}`],
      ...["--generation-deterministic", "--no-shrink", "--checks", CHECKS.join()],
      // A slow machine is no finding.
      ...["--suppress-health-check", "all", "--request-timeout", "300"],
      ...args,
    );

  test("a tester that makes values, valid and not, gets no answer that the document does not describe", async () => {
    const output = await probe(
      ...PROBED.flatMap((operation) => ["--include-operation-id", operation]),
      ...["--phases", "examples,coverage,fuzzing", "--max-examples", "10"],
    );
    expect(output).toMatch(/Tested: 3\b/);
  });

  test("no operation answers its example, or a value like it, otherwise than the document says", async () => {
    const document = JSON.parse(readFileSync(join(folder, "openapi.json"), "utf8"));
    const operations = Object.keys(document.paths).length;
    const output = await probe(
      ...["--exclude-operation-id-regex", ENDING.source],
      ...["--phases", "examples,fuzzing", "--max-examples", "1"],
    );
    const [, selected] = /Selected: (\d+)\/\d+/.exec(output) ?? [];
    expect(Number(selected)).toBe(
      operations - Object.keys(document.paths).filter((path) => ENDING.test(path)).length,
    );
    expect(output).toContain(`Tested: ${selected}`);
  });
});
