import { afterAll, describe, expect, test } from "@jest/globals";
import { post, repository } from "../harness/call.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";

afterAll(stopAll);

const MIN_BYTES = 4_096;

/** Lists so many projects. @returns the size of the answer, and its encoding */
async function list({ url, token }: HostedServer, pageSize: number, accepted: string) {
  const res = await fetch(`${url}/api/service.v1.ProjectService/ListProjects`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "accept-encoding": accepted,
    },
    body: JSON.stringify({ pagination: { pageSize } }),
  });
  return { bytes: (await res.text()).length, encoding: res.headers.get("content-encoding") };
}

describe.each(["on", "off"])("with the path of our own %s", (path) => {
  test("answers are compressed from 4 KiB on, for clients that accept it", async () => {
    const server = await startHostedServer({ args: ["--fast-path", path] });
    for (let index = 0; index < 12; index++) {
      const initializer = repository(`https://git.example.org/team/r${index}.git`);
      expect((await post(server, "ProjectService/CreateProject", { initializer })).status).toBe(200);
    }
    const pages: Awaited<ReturnType<typeof list>>[] = [];
    for (let size = 1; size <= 12; size++) pages.push(await list(server, size, "gzip"));
    const ofSize = (isLarge: boolean) =>
      pages.filter(({ bytes }) => bytes >= MIN_BYTES === isLarge).map(({ encoding }) => encoding);
    expect(new Set(ofSize(true))).toEqual(new Set(["gzip"]));
    expect(new Set(ofSize(false))).toEqual(new Set([null]));
    expect(await list(server, 12, "identity")).toMatchObject({ encoding: null });
  });
});
