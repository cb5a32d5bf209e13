import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, repository } from "../harness/call.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { expectError } from "./expected-error.ts";

let server: HostedServer;
beforeAll(async () => {
  server = await startHostedServer();
  const projects = ["a", "b", "c"].map((name) => ({
    name,
    initializer: repository(`https://git.example.org/${name}.git`),
  }));
  await post(server, "ProjectService/CreateProjects", { projects });
});
afterAll(stopAll);

const list = (query: string, body: unknown = {}, operation = "ProjectService/ListProjects") =>
  post(server, `${operation}?${query}`, body);
const names = ({ body }: Answer) => body.projects.map((each: Answer["body"]) => each.metadata.name);
const tokenOf = (answer: Answer): string => encodeURIComponent(answer.body.pagination.nextToken);

describe("a List operation whose body leaves out the pagination", () => {
  test("takes it from the query, and so reaches every page", async () => {
    const first = await list("pageSize=2");
    expect(names(first)).toHaveLength(2);
    const second = await list(`pageSize=2&token=${tokenOf(first)}`);
    expect(names(second)).toHaveLength(1);
    expect([...names(first), ...names(second)].toSorted()).toEqual(["a", "b", "c"]);
    expect(second.body.pagination?.nextToken ?? "").toBe("");
  });

  test("takes each of the two alone, also next to what it does not know", async () => {
    const first = await list("pageSize=1&connect=v1&x=y");
    expect(names(first)).toHaveLength(1);
    expect(names(await list(`token=${tokenOf(first)}`))).toHaveLength(2);
  });

  test("takes it on the path of the protocol layer too", async () => {
    const stream = new Blob(["{}"]).stream();
    const res = await fetch(`${server.url}/api/service.v1.ProjectService/ListProjects?pageSize=1`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${server.token}` },
      body: stream,
      duplex: "half",
    } as RequestInit);
    expect((await res.json()).projects).toHaveLength(1);
  });

  test("holds it to the limits of the contract", async () => {
    expectError(await list("pageSize=101"), 400, "invalid_argument", "CONSTRAINT_VIOLATED");
    expectError(await list("pageSize=-1"), 400, "invalid_argument", "CONSTRAINT_VIOLATED");
    expectError(await list("pageSize=many"), 400, "invalid_argument", "VALUE_UNUSABLE");
    expectError(await list("token=forged"), 400, "invalid_argument", "PAGE_TOKEN_INVALID");
  });
});

test("the body wins when both have a pagination", async () => {
  expect(names(await list("pageSize=1&token=forged", { pagination: { pageSize: 3 } }))).toHaveLength(3);
});

test("operations without pages ignore the query", async () => {
  const answer = await list("pageSize=many&token=x", {}, "IdentityService/GetAuthenticatedIdentity");
  expect(answer.status).toBe(200);
});

test("no query is logged", async () => {
  await list("pageSize=1&token=a-secret-in-the-wrong-place");
  await server.stop();
  expect(server.logText()).toContain("ProjectService/ListProjects");
  expect(server.logText()).not.toContain("pageSize");
  expect(server.logText()).not.toContain("a-secret-in-the-wrong-place");
});
