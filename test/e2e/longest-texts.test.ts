import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { addWorkflow, deliver, ledgerOf, verdictsOf } from "../harness/webhook.ts";
import { GITHUB_PULL_REQUEST, openedPullRequest } from "../harness/webhook-payload.ts";
import { hubSignature } from "../harness/webhook-signing.ts";
import { ACTION } from "../harness/workflow.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

/** Returns so many letters of three bytes each, in an order that hardly compresses. */
const letters = (count: number, first = 0) =>
  Array.from({ length: count }, (_, index) =>
    String.fromCharCode(0x4e00 + (((first + index) * 7_919) % 20_000)),
  ).join("");

/** Returns an address of exactly so many characters. */
function address(length: number, fill: (count: number) => string): string {
  const begin = "https://git.example.org/team/";
  return `${begin}${fill(length - begin.length)}`;
}

const create = (request: object) =>
  post(server, "ProjectService/CreateProject", { name: "long", ...request });
const idsOf = async (filter: object) => {
  const { projects } = await succeeded(post(server, "ProjectService/ListProjects", { filter }));
  return projects.map(({ id }: { readonly id: string }) => id);
};

describe("a project", () => {
  test.each([
    ["of ASCII", (count: number) => "abcdefghij".repeat(count).slice(0, count)],
    ["of three bytes a character", (count: number) => letters(count)],
  ])("has remotes of 2,048 characters %s, and is found by each", async (_, fill) => {
    const remotes = [address(2_048, fill), address(2_047, fill)];
    const specs = remotes.flatMap((remoteUri) => repository(remoteUri).specs);
    const { project } = await succeeded(create({ initializer: { specs } }));
    for (const remote of remotes) expect(await idsOf({ specRemoteUris: [remote] })).toEqual([project.id]);
    const tooLong = await create({ initializer: repository(address(2_049, fill)) });
    expect([tooLong.status, tooLong.body.code]).toEqual([400, "invalid_argument"]);
  });

  test("has 32 annotations of the longest keys and values, and is found by them", async () => {
    const annotations = Object.fromEntries(
      Array.from({ length: 32 }, (_, index) => [letters(128, index * 131), letters(512, index * 517)]),
    );
    const { project } = await succeeded(
      create({ initializer: repository("https://git.example.org/a/b"), annotations }),
    );
    expect(project.metadata.annotations).toEqual(annotations);
    expect(await idsOf({ annotations })).toEqual([project.id]);
  });

  test("with U+0000 in its texts is one that workflows run over", async () => {
    const text = "a\0\0 \\\0 \\u0000";
    const initializer = repository("https://git.example.org/a/b");
    const { project } = await succeeded(
      create({ initializer, technicalDescription: text, annotations: { text } }),
    );
    const { workflow } = await succeeded(
      post(server, "WorkflowService/CreateWorkflow", {
        name: "Over it",
        triggers: [{ manual: {}, context: { projects: { projectIds: [project.id] } } }],
        action: ACTION,
      }),
    );
    const { workflowExecution } = await succeeded(
      post(server, "WorkflowService/StartWorkflow", { workflowId: workflow.id }),
    );
    expect(workflowExecution.status.pendingActionCount).toBe(1);
  });

  test("keeps U+0000, and the characters that the engines may store in its place", async () => {
    const odd = "\0 \ue0fd\ue0fe\ue0ff \0\0 \ue0ff\ue0fe\ue0fe";
    const annotations = { [`key ${odd}`]: odd, [`zeros ${"\0".repeat(122)}`]: "\0".repeat(512) };
    const technicalDescription = odd.repeat(500);
    const { project } = await succeeded(
      create({ initializer: repository("https://git.example.org/a/b"), annotations, technicalDescription }),
    );
    const change = { projects: [{ projectId: project.id, name: "renamed" }] };
    const updated = await succeeded(post(server, "ProjectService/UpdateProjects", change));
    for (const { metadata, technicalDescription: found } of [project, ...updated.updatedProjects]) {
      expect(metadata.annotations).toEqual(annotations);
      expect(found).toBe(technicalDescription);
    }
    for (const [key, value] of Object.entries(annotations)) {
      expect(await idsOf({ annotations: { [key]: value } })).toEqual([project.id]);
    }
    const stored = odd.replaceAll("\0", "\ue0ff\ue0fe\ue0fe");
    expect(await idsOf({ annotations: { [`key ${odd}`]: stored } })).toEqual([]);
  });
});

test("a pull request of the longest clone URL starts its workflow once", async () => {
  const { id, secret } = await addWorkflow(server, {
    triggers: [{ pullRequest: {}, context: { agent: { prompt: "Review it" } } }],
  });
  const clone = { "repository.clone_url": address(2_048, letters) };
  const send = (title: string) => {
    const body = Buffer.from(JSON.stringify(openedPullRequest({ ...clone, "pull_request.title": title })));
    return deliver(server, id, body, { ...GITHUB_PULL_REQUEST, ...hubSignature(secret, body) });
  };
  expect(verdictsOf(await send("one"))).toEqual([202, "STARTED"]);
  expect(verdictsOf(await send("other"))).toEqual([200, "DUPLICATE"]);
  expect(await ledgerOf(server, id)).toHaveLength(2);
});
