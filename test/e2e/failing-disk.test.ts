import { afterAll, expect } from "@jest/globals";
import { post, reasonOf } from "../harness/call.ts";
import { testWithSlowDisk } from "../harness/own-disk.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { until } from "../harness/until.ts";

afterAll(stopAll);

const create = (server: TestServer, name: string) =>
  post(server, "ProjectService/CreateProject", { name, initializer: { specs: [] } });
const names = async (server: TestServer): Promise<string[]> =>
  (await post(server, "ProjectService/ListProjects", {})).body.projects.map(
    ({ metadata }: { metadata: { name: string } }) => metadata.name,
  );
const readyz = async (server: TestServer) => {
  const res = await fetch(`${server.url}/readyz`);
  return { status: res.status, body: await res.json() };
};

testWithSlowDisk(
  "a disk that cannot be forced is called that, and nothing of what was refused is seen",
  async (disk) => {
    const server = await startServer({ env: disk.env });
    expect((await create(server, "before")).status).toBe(200);
    disk.failFor("-wal");
    const refused = await create(server, "during");
    expect([refused.status, refused.body.code, reasonOf(refused)]).toEqual([
      503,
      "unavailable",
      "UNAVAILABLE",
    ]);
    expect(refused.body.message).not.toContain("busy");
    const problem = "the disk of the data folder fails";
    const problems = [{ check: "database", reason: problem }];
    const unready = { status: 503, body: { status: "unavailable", reason: problem, problems } };
    expect(await readyz(server)).toEqual(unready);
    await until(
      async () => server.log().find(({ msg }) => msg === "internal error"),
      (line) => (line?.err as Error | undefined)?.stack?.includes("disk I/O error") ?? false,
    );
    await until(
      async () => server.log().find(({ msg }) => msg === "the database accepts no changes; reads still work"),
      (line) => line?.problem === problem,
    );
    // The job has tried a change by now.
    expect(await readyz(server)).toEqual(unready);
    expect(await names(server)).toEqual(["before"]);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);

    disk.restore();
    await until(
      () => readyz(server),
      ({ status }) => status === 200,
    );
    expect((await create(server, "after")).status).toBe(200);
    expect((await names(server)).sort()).toEqual(["after", "before"]);
    expect(await server.stop()).toBe(0);
  },
);
