import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { reasonOf } from "../harness/call.ts";
import { mainThreadMs } from "../harness/cpu-time.ts";
import { registerRunner } from "../harness/fake-runner.ts";
import { type Prober, startProber } from "../harness/prober.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { sendWorst, worstRequests } from "../harness/worst-requests.ts";

/** The goal of bench/requests.ts is 100 ms; other work of the machine may take the rest. */
const LONGEST_MS = 500;
const ATTEMPTS = 6;
const GROWTH_BYTES = 256 * 1024 * 1024;

/** What is refused before anything is built of it. */
const COUNTED = ["BODY_TOO_COMPLEX", "BODY_TOO_LARGE"];

const WORST = worstRequests(20);

describe.each([
  ["the unary path", "on"],
  ["the protocol layer", "off"],
])("the twenty worst requests of the contract on %s", (_, fastPath) => {
  let server: TestServer;
  let runnerToken: string;
  let prober: Prober;
  beforeAll(async () => {
    server = await startServer({ env: { CHARTROOM_FAST_PATH: fastPath } });
    runnerToken = (await registerRunner(server)).token;
    prober = startProber({ url: server.url, token: server.token, pid: server.process.pid as number });
    await prober.take();
  });
  afterAll(async () => {
    await prober.stop();
    await stopAll();
  });

  test.each(WORST.map((worst) => [worst.name, worst] as const))("%s", async (_name, worst) => {
    const body = worst.body();
    await prober.take();
    const idleBytes = (await prober.take()).peakBytes;
    let waited = { longestMs: 0, peakBytes: 0 };
    let stalledMs = 0;
    // A wait that is the server's own comes each time; one that the machine had does not.
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      await prober.take();
      const workedBefore = mainThreadMs(server.process);
      const answer = await sendWorst(server, worst, body, runnerToken);
      waited = await prober.take();
      // A call that waits longer than the server's own thread worked waits for other processes of the machine.
      stalledMs = Math.min(waited.longestMs, mainThreadMs(server.process) - workedBefore);
      if (worst.isValid) expect([...COUNTED, "INTERNAL"]).not.toContain(reasonOf(answer));
      else expect(COUNTED).toContain(reasonOf(answer));
      expect([401, 403]).not.toContain(answer.status);
      if (stalledMs < LONGEST_MS) break;
    }
    expect(stalledMs).toBeLessThan(LONGEST_MS);
    expect(waited.peakBytes - idleBytes).toBeLessThan(GROWTH_BYTES);
  });
});
