import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post, repository } from "../harness/call.ts";
import { withRawData } from "../harness/raw-data.ts";
import { type ReachableServer, runCommand, startHostedServer, stopAll } from "../harness/server.ts";

const NEW = { name: "before", initializer: repository("https://git.example.org/a/b") };

let server: ReachableServer;
let projectId: string;
beforeAll(async () => {
  server = await startHostedServer();
  const created = await post(server, "ProjectService/CreateProject", NEW);
  projectId = created.body.project.id;
});
afterAll(stopAll);

const named = (name: string) => post(server, "ProjectService/UpdateProject", { projectId, name });
const read = () => post(server, "ProjectService/GetProject", { projectId });

test("while another process holds the write lock reads are answered, and writes wait for it", async () => {
  await withRawData(server.dataDir, async (raw) => {
    await raw.beginLocked();
    let isOver = false;
    const writing = Promise.all([named("after"), post(server, "ProjectService/CreateProject", NEW)]);
    void writing.finally(() => {
      isOver = true;
    });
    // Enough of them that the writes have come, too.
    for (let reads = 0; reads < 20; reads++)
      expect((await read()).body.project?.metadata.name).toBe("before");
    expect(isOver).toBe(false);
    await raw.run("rollback");
    expect((await writing).map(({ status }) => status)).toEqual([200, 200]);
    expect((await read()).body.project.metadata.name).toBe("after");
  });
});

test("a command next to a server that writes without a pause gets the lock", async () => {
  let isOver = false;
  let writes = 0;
  const load = async () => {
    for (; !isOver; writes++) expect((await named(`name ${writes}`)).status).toBe(200);
  };
  const loading = Promise.all(Array.from({ length: 16 }, load));
  const { organizationId } = (await post(server, "IdentityService/GetAuthenticatedIdentity")).body;
  const person = ["--organization", organizationId, "--email", "b@example.org", "--name", "Ben"];
  const { code, stderr } = await runCommand(["member", "add", ...person, "--data-dir", server.dataDir]);
  isOver = true;
  await loading;
  expect([code, stderr]).toEqual([0, ""]);
});
