import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { WorkService } from "#gen/runner/v1/work_service_pb.js";
import { speakConnect } from "../e2e/speak/connect.ts";
import { speakFetch } from "../e2e/speak/fetch.ts";
import { speakGrpcJs } from "../e2e/speak/grpc-js.ts";
import { tellStory } from "../e2e/story.ts";
import { post, repository } from "../harness/call.ts";
import { type FakeRunner, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { describeWith } from "../harness/program.ts";
import { stopAll, type TestServer } from "../harness/server.ts";
import { startExecution } from "../harness/started-execution.ts";
import { type Watch, watch } from "../harness/watch.ts";
import { defineAddressTests } from "./address-tests.ts";
import { defineBodyTests } from "./body-tests.ts";
import { defineOutageTests } from "./outage-tests.ts";
import type { StartProxy } from "./proxies.ts";
import { startServers } from "./servers.ts";
import { ALL_TRANSPORTS, channelOf, type Setting, TRANSPORTS, type TransportName } from "./setting.ts";
import { defineStreamTests } from "./stream-tests.ts";

/** The longest wait that a runner can ask for; proxies by themselves wait no longer. */
const LONGEST_WAIT_SECONDS = 60;

/**
 * Defines the tests of a proxy that runs with its file from examples/proxy.
 *
 * @param opensAtOnce the transports over which a stream is known to be open before its first message
 */
export function describeProxy(
  program: string,
  startProxy: StartProxy,
  opensAtOnce: readonly TransportName[],
): void {
  describeWith([program, "openssl", "curl"], `${program} before two servers`, () => {
    let setting: Setting;
    let runner: FakeRunner;
    /** A wait for work and streams on which nothing happens, while the other tests run. */
    let silentWait: Promise<{ readonly ms: number; readonly works: number }>;
    let silentStreams: Watch[];
    let idle: TestServer;

    beforeAll(async () => {
      const servers = await startServers();
      const addresses = [servers.one, servers.other].map(({ port }) => `127.0.0.1:${port}`);
      setting = { servers, proxy: await startProxy(addresses) };
      runner = await registerRunner(servers.one);
      silentWait = waitForWork();
      idle = { ...servers.one, token: await servers.addOrganization() };
      silentStreams = [TRANSPORTS["Connect in JSON over HTTP/1.1"], TRANSPORTS.gRPC].map((transport) =>
        watch(transport(setting, idle.token), idle.token),
      );
      // Their ends are expected in the last test.
      silentWait.catch(() => undefined);
    });
    afterAll(async () => {
      await setting?.proxy.stop();
      await setting?.servers.stop();
      await stopAll();
    });

    /** Waits for work of a kind that there is none of. */
    const waitForWork = async () => {
      const transport = TRANSPORTS["Connect in JSON over HTTP/1.1"](setting, runner.token);
      const startedAt = performance.now();
      const { works } = await createClient(WorkService, transport).leaseWork({
        maxLeases: 1,
        kinds: [WorkKind.PREBUILD],
        wait: { seconds: BigInt(LONGEST_WAIT_SECONDS) },
      });
      return { ms: performance.now() - startedAt, works: works.length };
    };

    describe("unary calls", () => {
      test.each(ALL_TRANSPORTS)("over %s end as those to a server itself", async (_, transport) => {
        const direct = await tellStory(speakFetch(setting.servers.one));
        expect(direct).toHaveLength(8);
        expect(await tellStory(speakConnect(transport(setting)))).toEqual(direct);
      });

      test("of grpc-js end as those to a server itself", async () => {
        const speak = speakGrpcJs(
          { port: setting.proxy.port, token: setting.servers.token },
          ...channelOf(setting),
        );
        expect(await tellStory(speak)).toEqual(await tellStory(speakFetch(setting.servers.one)));
        speak.close();
      });
    });

    defineStreamTests(() => setting, opensAtOnce);

    test.each(ALL_TRANSPORTS)(
      "a wait for work over %s is answered when there is some",
      async (_, transport) => {
        const work = createClient(WorkService, transport(setting, runner.token)).leaseWork({
          maxLeases: 1,
          wait: { seconds: BigInt(LONGEST_WAIT_SECONDS) },
          kinds: [WorkKind.ACTION],
        });
        const [{ works }] = await Promise.all([work, startExecution(setting.servers.other)]);
        expect(works).toHaveLength(1);
      },
    );

    defineBodyTests(() => setting);
    defineAddressTests(() => setting);

    test("a wait and streams that are silent for a minute are not cut", async () => {
      const { ms, works } = await silentWait;
      expect(works).toBe(0);
      expect(ms).toBeGreaterThanOrEqual(LONGEST_WAIT_SECONDS * 1000 - 100);
      const body = { initializer: repository("https://git.example.org/team/hello.git") };
      const { project } = await succeeded(post(idle, "ProjectService/CreateProject", body));
      for (const stream of silentStreams) {
        expect(stream.messages.filter(({ resourceId }) => resourceId !== project.id)).toEqual([]);
        await stream.find(({ resourceId }) => resourceId === project.id);
        stream.cancel();
      }
    });

    // They stop a server.
    defineOutageTests(() => setting);
  });
}
