import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ServerReflection, ServerReflectionRequestSchema } from "#gen/grpc/reflection/v1/reflection_pb.js";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { post } from "../harness/call.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { type ReachableServer, runHostedCommand, startHostedServer, stopAll } from "../harness/server.ts";
import { watch } from "../harness/watch.ts";
import { bearer } from "./speak/connect.ts";

let server: ReachableServer;
let organizationId: string;
beforeAll(async () => {
  server = await startHostedServer();
  ({ organizationId } = (await post(server, "IdentityService/GetAuthenticatedIdentity")).body);
});
afterAll(stopAll);

const join = (name: string): Promise<TestMember> =>
  addMember(server, { organizationId, email: `${name}@example.org` });

describe("a stream of a blocked account", () => {
  /** Opens a stream that stays open, has one answer from it, and tells how it ends. */
  async function stream(token: string): Promise<{ ended: Promise<unknown>; close: () => void }> {
    const transport = createGrpcTransport({ baseUrl: server.url, interceptors: [bearer(token)] });
    let close = () => {};
    const closed = new Promise<void>((resolve) => {
      close = resolve;
    });
    async function* requests() {
      yield create(ServerReflectionRequestSchema, { messageRequest: { case: "listServices", value: "" } });
      await closed;
    }
    const answers = createClient(ServerReflection, transport).serverReflectionInfo(requests());
    const reading = answers[Symbol.asyncIterator]();
    expect((await reading.next()).done).toBe(false);
    const ended = reading.next().then(
      () => "closed",
      (error) => error,
    );
    return { ended, close };
  }

  function expectBlocked(error: unknown): void {
    expect(ConnectError.from(error).code).toBe(Code.PermissionDenied);
    expect(ConnectError.from(error).findDetails(ErrorDetailSchema)[0]?.reason).toBe(
      ErrorReason.ACCOUNT_BLOCKED,
    );
  }

  test("ends when the account is blocked, and others go on", async () => {
    const [person, other] = [await join("ann"), await join("ben")];
    const [cut, kept] = [await stream(person.token), await stream(other.token)];
    const { accountId } = person;
    const answer = await post(server, "AccountService/BlockAccount", { accountId, reason: "left" });
    expect(answer.status).toBe(200);
    expectBlocked(await cut.ended);
    cut.close();
    kept.close();
    expect(await kept.ended).toBe("closed");
  });

  test("ends within a second when the operator blocks it", async () => {
    let fastest = Number.POSITIVE_INFINITY;
    // The machine may stall during one of them, and not during each.
    for (let attempt = 1; fastest > 1_000 && attempt <= 20; attempt++) {
      const person = await join(`cleo${attempt}`);
      const cut = await stream(person.token);
      const { dataDir } = server;
      const args = ["account", "block", person.accountId, "--reason", "left", "--data-dir", dataDir];
      expect((await runHostedCommand(args)).code).toBe(0);
      const blocked = performance.now();
      expectBlocked(await cut.ended);
      fastest = Math.min(fastest, performance.now() - blocked);
      cut.close();
    }
    expect(fastest).toBeLessThan(1_000);
  });

  test("ends when it watches events", async () => {
    const administrator = await addMember(server, {
      organizationId,
      email: "eve@example.org",
      administrator: true,
    });
    const watching = watch(createGrpcTransport({ baseUrl: server.url }), administrator.token);
    await watching.opened;
    const { accountId } = administrator;
    await post(server, "AccountService/BlockAccount", { accountId, reason: "left" });
    expectBlocked(await watching.ended);
  });

  test("ends when its token is revoked, as one that never was", async () => {
    const person = await join("dora");
    const revoked = { ...server, token: person.token };
    const open = await stream(person.token);
    const { personalAccessTokens } = (await post(revoked, "UserService/ListPersonalAccessTokens")).body;
    const personalAccessTokenId = personalAccessTokens[0].id;
    await post(revoked, "UserService/DeletePersonalAccessToken", { personalAccessTokenId });
    expect(ConnectError.from(await open.ended).code).toBe(Code.Unauthenticated);
    open.close();
  });
});
