import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { doAction, type FakeRunner, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { auditTrailOf } from "../harness/host-token.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { startExecution } from "../harness/started-execution.ts";

let server: HostedServer;
let executor: TestMember;
let runner: FakeRunner;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  const { organizationId } = (await call("IdentityService/GetAuthenticatedIdentity")).body;
  executor = await addMember(server, { organizationId, email: "executor@example.org" });
  runner = await registerRunner(server);
});
afterAll(stopAll);

const call = (operation: string, body: object = {}, token = server.token) =>
  post(server, operation, body, token);
const refusal = (answer: Answer) => [answer.status, reasonOf(answer)];

/** Stores a credential of the executor; its id. */
async function store(host: string, token: string, more: object = {}): Promise<string> {
  const request = { runnerId: runner.runnerId, host, token, ...more };
  const made = await succeeded(
    call("RunnerConfigurationService/CreateHostAuthenticationToken", request, executor.token),
  );
  return made.token.id;
}

const workOn = async (remote: string) => {
  await startExecution(server, { token: executor.token, repository: () => remote });
  return runner.leaseOne();
};

describe("the credential of a host", () => {
  test("is handed to the runner that holds work of its owner that begins there, each time with a row in the record", async () => {
    const id = await store("one.example.org", "credential of one", { expiresAt: "2999-12-31T00:00:00Z" });
    const work = await workOn("https://One.Example.org/team/a.git");
    for (let time = 0; time < 2; time += 1) {
      expect(await succeeded(runner.credential(work, "one.example.org"))).toEqual({
        token: "credential of one",
        source: "HOST_AUTHENTICATION_TOKEN_SOURCE_PAT",
        expiresAt: "2999-12-31T00:00:00Z",
        hostAuthenticationTokenId: id,
      });
    }
    const { rows, kinds } = await auditTrailOf(server, id);
    expect(rows.slice(1)).toEqual(
      Array(2).fill({
        operation: "runner.v1.WorkService/GetHostCredential",
        actor_id: runner.runnerId,
        subject_type: "host_token",
        diff: expect.anything(),
      }),
    );
    expect(kinds).toEqual(["created"]);
    expect(server.logText()).not.toContain("credential of one");
    await doAction(runner, work);
    expect(refusal(await runner.credential(work, "one.example.org"))).toEqual([409, "LEASE_LOST"]);
  });

  test("is handed out for no host but those that the work begins from", async () => {
    await store("two.example.org", "credential of two");
    await store("two.example.org:8443", "credential of two's other port");
    const work = await workOn("git@two.example.org:team/a.git");
    expect((await succeeded(runner.credential(work, "TWO.example.org"))).token).toBe("credential of two");
    for (const host of ["one.example.org", "two.example.org:8443", "example.org", "x.two.example.org"]) {
      expect(refusal(await runner.credential(work, host))).toEqual([400, "VALUE_UNUSABLE"]);
    }
    await doAction(runner, work);
    const other = await workOn("https://two.example.org:8443/team/a.git");
    expect((await succeeded(runner.credential(other, "two.example.org:8443"))).token).toBe(
      "credential of two's other port",
    );
    await doAction(runner, other);
  });

  test("is that of the executor on this runner, nobody else's", async () => {
    const request = { host: "three.example.org", token: "of another" };
    const create = "RunnerConfigurationService/CreateHostAuthenticationToken";
    await succeeded(call(create, { runnerId: runner.runnerId, ...request }));
    const fellow = await registerRunner(server, { name: "Another" });
    await succeeded(call(create, { runnerId: fellow.runnerId, ...request }, executor.token));
    const work = await workOn("https://three.example.org/team/a.git");
    expect(refusal(await runner.credential(work, "three.example.org"))).toEqual([404, "NOT_FOUND"]);
    expect(refusal(await fellow.credential(work, "three.example.org"))).toEqual([409, "LEASE_LOST"]);
    await doAction(runner, work);
  });

  test("comes with an environment while that is to be brought up, and with its creator's name", async () => {
    await store("four.example.org", "credential of four");
    const spec = {
      machine: { class: runner.environmentClassId },
      content: { initializer: repository("ssh://git@four.example.org/team/a.git") },
    };
    const { environment } = await succeeded(
      call("EnvironmentService/CreateEnvironment", { spec }, executor.token),
    );
    const work = await runner.leaseOne();
    expect((await succeeded(runner.credential(work, "four.example.org"))).token).toBe("credential of four");
    await succeeded(runner.finish(work));
    const environmentId = environment.id;
    await succeeded(call("EnvironmentService/DeleteEnvironment", { environmentId }, executor.token));
    const deleting = await runner.leaseOne();
    expect(refusal(await runner.credential(deleting, "four.example.org"))).toEqual([400, "VALUE_UNUSABLE"]);
    await succeeded(runner.finish(deleting));
  });

  test("is refused once its owner's account is blocked", async () => {
    await store("five.example.org", "credential of five");
    const work = await workOn("https://five.example.org/team/a.git");
    const { accountId } = executor;
    await succeeded(call("AccountService/BlockAccount", { accountId, reason: "left the team" }));
    for (const answer of await Promise.all([
      runner.credential(work, "five.example.org"),
      runner.renew(work),
      runner.report(work),
      runner.finish(work),
    ])) {
      expect([answer.status, answer.body.code, reasonOf(answer)]).toEqual([
        403,
        "permission_denied",
        "ACCOUNT_BLOCKED",
      ]);
    }
  });
});
