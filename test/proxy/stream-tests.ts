import { type ClientReadableStream, Metadata } from "@grpc/grpc-js";
import { describe, expect, test } from "@jest/globals";
import { loadService } from "../e2e/speak/grpc-js.ts";
import { post, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { until } from "../harness/until.ts";
import { watch } from "../harness/watch.ts";
import { ALL_TRANSPORTS, type CurrentSetting, channelOf, TRANSPORTS, type TransportName } from "./setting.ts";

/** Messages are there at once: those of what has happened so far. */
const FROM_THE_BEGINNING = { afterSequence: 0n };

/**
 * Defines the tests that messages of streams pass as they come.
 *
 * @param opensAtOnce the transports over which a stream is known to be open before its first message
 */
export function defineStreamTests(current: CurrentSetting, opensAtOnce: readonly TransportName[]): void {
  const createProject = async (): Promise<string> => {
    const body = { initializer: repository("https://git.example.org/team/hello.git") };
    const { project } = await succeeded(post(current().servers.one, "ProjectService/CreateProject", body));
    return project.id;
  };

  describe("a stream of events", () => {
    test.each(opensAtOnce)("over %s is open before its first message", async (name) => {
      const stream = watch(TRANSPORTS[name](current()), current().servers.token);
      await stream.opened;
      expect(stream.messages).toEqual([]);
      const projectId = await createProject();
      await stream.find(({ resourceId }) => resourceId === projectId);
      stream.cancel();
    });

    test.each(ALL_TRANSPORTS)("over %s comes message by message", async (_, transport) => {
      const stream = watch(transport(current()), current().servers.token, FROM_THE_BEGINNING);
      await stream.until(1);
      for (let count = 0; count < 2; count++) {
        const projectId = await createProject();
        expect((await stream.find(({ resourceId }) => resourceId === projectId)).sequence).not.toBe(0n);
      }
      stream.cancel();
    });

    test("of grpc-js comes message by message", async () => {
      const { proxy, servers } = current();
      const Events = loadService<EventClient>("service/v1/event_service.proto", "service.v1.EventService");
      const client = new Events(`127.0.0.1:${proxy.port}`, ...channelOf(current()));
      const metadata = new Metadata();
      metadata.set("authorization", `Bearer ${servers.token}`);
      const received: string[] = [];
      const stream = client.watchEvents(FROM_THE_BEGINNING, metadata);
      stream.on("data", ({ resourceId }) => void received.push(resourceId)).on("error", () => {});
      await until(
        () => received.length,
        (count) => count > 0,
      );
      for (let count = 0; count < 2; count++) {
        const projectId = await createProject();
        await until(
          () => received,
          (ids) => ids.includes(projectId),
        );
      }
      stream.cancel();
      client.close();
    });

    test.each(ALL_TRANSPORTS)("over %s ends at the server when its reader has gone", async (_, transport) => {
      // A token of its own, by which the log tells this stream from others.
      const { one, calls } = current().servers;
      const own = await succeeded(post(one, "UserService/CreatePersonalAccessToken"));
      const ofOwn = await post(one, "IdentityService/GetAuthenticatedIdentity", {}, own.token);
      const requestId = ofOwn.header.get("x-request-id");
      const line = await until(() => calls().find((call) => call.requestId === requestId), Boolean);
      const ended = () =>
        calls().filter(({ token, operation }) => token === line?.token && operation !== line?.operation);
      const stream = watch(transport(current(), own.token), own.token, FROM_THE_BEGINNING);
      await stream.until(1);
      expect(ended()).toEqual([]);
      stream.cancel();
      const [last] = await until(ended, (lines) => lines.length > 0);
      expect(last).toMatchObject({ operation: "service.v1.EventService/WatchEvents" });
    });
  });
}

/** What proto-loader makes of the service of events. */
interface EventClient {
  watchEvents(request: object, metadata: Metadata): ClientReadableStream<{ readonly resourceId: string }>;
}
