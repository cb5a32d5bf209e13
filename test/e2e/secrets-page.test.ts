import { afterAll, beforeAll, expect } from "@jest/globals";
import { post } from "../harness/call.ts";
import { fencedBlocks } from "../harness/fenced-blocks.ts";
import { runProgram, testWith } from "../harness/program.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

const blocks = fencedBlocks("docs/secrets.md");

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

testWith(
  "bash",
  "curl",
  "sed",
)("the page about secrets can be pasted from the top down", async () => {
  const [setToken, ...commands] = blocks.map(({ text }) => text);
  expect(setToken).toBe("export TOKEN=cr_pat_...\n");
  const text = [`export TOKEN=${server.token}\n`, ...commands].join("\nprintf '\\0'\n");
  const { code, stdout, stderr } = await runProgram("bash", [
    "-e",
    "-c",
    text.replaceAll("http://127.0.0.1:8080", server.url),
  ]);
  expect([code, stderr]).toEqual([0, ""]);
  const [variable, file, list, proxied] = stdout
    .split("\0")
    .slice(1)
    .map((printed) => JSON.parse(printed));
  expect(variable.secret).toMatchObject({ name: "REGISTRY_TOKEN", environmentVariable: true });
  expect(file.secret).toMatchObject({ name: "DEPLOY_KEY", filePath: "/run/keys/deploy.pem" });
  expect(list.secrets).toEqual([variable.secret, file.secret]);
  expect(proxied.secret.credentialProxy).toMatchObject({ targetHosts: ["api.example.org"] });
  const { body } = await post(server, "SecretService/ListSecrets", {});
  expect(body.secrets).toHaveLength(3);
});
