import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { post, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import type { TestServer } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { overHttp1 } from "./https-client.ts";
import { type CurrentSetting, TRANSPORTS } from "./setting.ts";

/** Calls in a row, of which a proxy that turns to both servers sends some to each. */
const CALLS = 20;
const CLIENTS = 4;
const PROJECTS_EACH = 10;

/** Defines the tests in which one of the two servers cannot be used; the last one stops it for good. */
export function defineOutageTests(current: CurrentSetting): void {
  describe("a server that is not ready", () => {
    const readiness = async (server: TestServer) => (await fetch(`${server.url}/readyz`)).status;

    /** The outcomes of calls of two protocols through the proxy: `ok`, or a code. */
    const outcomes = async () => {
      const found = new Set<string>();
      for (const transport of [TRANSPORTS["Connect in JSON over HTTP/1.1"], TRANSPORTS.gRPC]) {
        const client = createClient(ProjectService, transport(current()));
        for (let count = 0; count < CALLS; count++) {
          await client.listProjects({}).then(
            () => found.add("ok"),
            ({ code }) => found.add(String(code)),
          );
        }
      }
      return [...found];
    };

    test("gets no calls, whatever their protocol, until it is ready again", async () => {
      const { other, one } = current().servers;
      await current().servers.cutOther();
      await until(
        () => readiness(other),
        (status) => status === 503,
      );
      await until(outcomes, (all) => all.join() === "ok");
      const took = calls(other);
      expect(await outcomes()).toEqual(["ok"]);
      expect(calls(other)).toBe(took);
      expect(await readiness(one)).toBe(200);

      await current().servers.restoreOther();
      await until(
        () => readiness(other),
        (status) => status === 200,
      );
      await until(
        async () => (await outcomes()).join() === "ok" && calls(other) > took,
        (isBack) => isBack,
      );
    });
  });

  test("when a server is killed, calls that are repeated under their key go on with the other", async () => {
    const { servers, proxy } = current();
    let created = 0;
    const create = async (name: string) => {
      const body = JSON.stringify({ name, initializer: repository("https://git.example.org/a/b.git") });
      for (;;) {
        const headers = {
          authorization: `Bearer ${servers.token}`,
          "content-type": "application/json",
          "idempotency-key": name,
        };
        const path = "/api/service.v1.ProjectService/CreateProject";
        const { status } = await overHttp1(proxy, { path, headers, body });
        if (status === 200) break;
        // A call that was under way when the server ended; the server itself answers 503 while it starts.
        expect([502, 503, 504]).toContain(status);
      }
      created += 1;
      // Some calls before, some after, some meanwhile.
      if (created === CLIENTS) await servers.other.kill();
    };
    await Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        for (let index = 0; index < PROJECTS_EACH; index++) await create(`kill-${client}-${index}`);
      }),
    );
    const { projects } = await succeeded(
      post(servers.one, "ProjectService/ListProjects", {
        filter: { search: "kill-" },
        pagination: { pageSize: 100 },
      }),
    );
    const names = projects.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
    expect(new Set(names).size).toBe(CLIENTS * PROJECTS_EACH);
    expect(names).toHaveLength(CLIENTS * PROJECTS_EACH);
  });
}

/** Returns how many calls of projects a server has logged. */
function calls(server: TestServer): number {
  return server.log().filter(({ operation }) => String(operation).includes("ProjectService")).length;
}
