import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { post, reasonOf } from "../test/harness/call.ts";
import { startProber } from "../test/harness/prober.ts";
import { startServer, stopAll } from "../test/harness/server.ts";
import { sendWorst, worstRequests } from "../test/harness/worst-requests.ts";
import { loadOfLastMinute, machineLines } from "./machine.ts";

// Measures how long another caller waits during the most expensive requests of the contract, and their memory.

const MIB = 1024 * 1024;
const isQuick = process.argv.includes("--quick");
const WORST = isQuick ? worstRequests(8) : worstRequests(40, 3);
const ROUNDS = isQuick ? 1 : 3;

const machine = machineLines();
const loads = [loadOfLastMinute()];
const server = await startServer();
const { exchangeToken } = (await post(server, "RunnerService/CreateRunner", { name: "Runner" })).body;
const introduction = {
  version: "1.0.0",
  systemDetails: "a bench",
  environmentClass: { displayName: "Class" },
};
const { token } = (await post(server, "WorkService/Register", introduction, exchangeToken)).body;
const prober = startProber({ url: server.url, token: server.token, pid: server.process.pid as number });
await prober.take();
const rows: string[] = [];
try {
  for (const worst of WORST) {
    const body = worst.body();
    const waits: number[] = [];
    let grownBytes = 0;
    let reason = "";
    for (let round = 0; round < ROUNDS; round++) {
      await prober.take();
      const idleBytes = (await prober.take()).peakBytes;
      const answer = await sendWorst(server, worst, body, token);
      const { longestMs, peakBytes } = await prober.take();
      waits.push(longestMs);
      grownBytes = Math.max(grownBytes, peakBytes - idleBytes);
      reason = reasonOf(answer) ?? String(answer.status);
    }
    const median = waits.sort((one, other) => one - other)[Math.floor(waits.length / 2)] ?? 0;
    const row = [
      worst.name,
      (body.length / 1e6).toFixed(2),
      reason,
      median.toFixed(0),
      (grownBytes / MIB).toFixed(0),
    ];
    rows.push(`| ${row.join(" | ")} |`);
    process.stdout.write(`${row.join("\t")}\n`);
  }
} finally {
  await prober.stop();
  await stopAll();
}
if (!isQuick) {
  const page = `# The worst requests

How long another caller waits, and how much the server's memory grows, during the requests that would cost the most if
the server parsed them before it counted their parts. \`npm run bench:requests\` derives them from the descriptors of the
contract, sends each ${ROUNDS} times alone, and writes this page. Another caller requests its identity every 2 ms; the table
shows the median over the rounds of its longest wait. The targets are 100 ms and 256 MiB.

${machine.map((line) => `- ${line}`).join("\n")}
- Load of the machine before and after: ${[...loads, loadOfLastMinute()].map((load) => load.toFixed(1)).join(", ")}

| request | MB sent | answer | longest wait, ms | growth, MiB |
| --- | ---: | --- | ---: | ---: |
${rows.join("\n")}
`;
  writeFileSync(join(import.meta.dirname, "REQUESTS.md"), page);
}
