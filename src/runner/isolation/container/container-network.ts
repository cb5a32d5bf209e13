import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readlinkSync } from "node:fs";
import { forwarderProgram } from "../../egress/forwarder.ts";
import { PROXY_PORT, type WorkNetwork } from "../../egress/work-network.ts";
import { WorkFailure } from "../../protocol/work-failure.ts";
import { realPathOf } from "../system-view.ts";
import { type ContainerParts, confinement, type Engine, mount } from "./container-arguments.ts";
import { runEngine } from "./engine.ts";

const NODE = "/run/node";
const SOCKET = "/run/egress.sock";
/** The machine's folders with Node's libraries, independent of the image. */
const LIBRARIES = ["/usr", "/lib", "/lib64"];
const FIRST_FREE_PORT = 1_024;
/** Minimum memory for Node to start: it reserves more than it uses. */
const FORWARDER_BYTES = 2 ** 30;
/** Maximum time to fetch a large image. */
const MAX_FETCH_MS = 15 * 60_000;
const MAX_OPENING_MS = MAX_FETCH_MS;

/**
 * Returns the name of the container whose network commands join.
 *
 * @throws WorkFailure command_not_started
 */
export type NetworkName = () => Promise<string>;

/**
 * Opens a network that has only a loopback interface, in its own container. Only a forwarder to the runner's proxy
 * runs there. It ends with the work. Its image is the operator's: the variables and linker settings of another image
 * could make the machine's Node run programs that they name, outside the work's limits and with the machine's
 * folders.
 *
 * @param parts the parts of the work, with the operator's image
 * @param remove removes a container
 */
export function openContainerNetwork(
  parts: ContainerParts,
  network: WorkNetwork,
  remove: (name: string) => Promise<void>,
): NetworkName {
  const name = `chartroom-network-${randomUUID()}`;
  const { loopbackService: service, socketFile } = network;
  const forwarder = forwarderProgram({ socketFile: SOCKET, proxyPort: PROXY_PORT, service });
  const memoryBytes = Math.max(parts.limits.memoryBytes, FORWARDER_BYTES);
  const args = [
    [
      ...["run", `--name=${name}`, "--network=none"],
      ...confinement({ ...parts, limits: { ...parts.limits, memoryBytes } }),
    ],
    service && service.port < FIRST_FREE_PORT ? ["--cap-add=NET_BIND_SERVICE"] : [],
    ...LIBRARIES.filter((each) => existsSync(each)).map((each) => mount(realPathOf(each), each, "readonly")),
    mount(readlinkSync("/proc/self/exe"), NODE, "readonly"),
    mount(socketFile, SOCKET),
    [`--entrypoint=${NODE}`, parts.image],
    ["--max-old-space-size=64", "--input-type=module", "--eval", forwarder],
  ].flat();
  const child = spawn(parts.engine.file, args, {
    cwd: "/",
    env: parts.engine.environment,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { promise: opened, resolve, reject } = Promise.withResolvers<string>();
  // A failure is reported by the first command that runs.
  opened.catch(() => undefined);
  const texts = { stdout: "", stderr: "" };
  child.stdout.on("data", (bytes: Buffer) => {
    texts.stdout = (texts.stdout + bytes).slice(0, 100);
    if (!texts.stdout.startsWith("ready\n")) return;
    isOpen = true;
    clearTimeout(timer);
    resolve(name);
  });
  child.stderr.on("data", (bytes: Buffer) => {
    texts.stderr = (texts.stderr + bytes).slice(0, 2_000);
  });
  let problem: string | undefined;
  const fail = (why: string) => {
    problem ??= `no network could be made for the work: ${why}`;
    reject(new WorkFailure("command_not_started", problem));
  };
  let isOpen = false;
  const end = () => {
    // Otherwise it would create a container once it has fetched the image.
    if (!isOpen) child.kill("SIGKILL");
    void remove(name);
  };
  const timer = setTimeout(() => {
    fail(`the engine has not started a container in ${MAX_OPENING_MS / 60_000} minutes`);
    end();
  }, MAX_OPENING_MS).unref();
  child.once("error", (error) => fail(error.message));
  child.once("close", (code) => {
    clearTimeout(timer);
    fail(texts.stderr.trim().split("\n").at(-1) || `it ended with ${code}`);
  });
  network.ended.addEventListener("abort", end);
  if (network.ended.aborted) end();
  return async () => {
    const found = await opened;
    if (problem !== undefined) throw new WorkFailure("command_not_started", problem);
    return found;
  };
}

/**
 * Makes the engine fetch an image unless it already has it.
 *
 * @param ended stops the fetch when the work ends
 * @throws WorkFailure command_not_started
 */
export async function fetchImage(engine: Engine, image: string, ended: AbortSignal): Promise<void> {
  if ((await runEngine(engine, ["image", "inspect", "--format={{.Id}}", image])).isDone) return;
  const { isDone, text } = await runEngine(engine, ["pull", "--quiet", image], {
    timeoutMs: MAX_FETCH_MS,
    signal: ended,
  });
  if (isDone) return;
  const why = text.split("\n").at(-1) || `it was not there in ${MAX_FETCH_MS / 60_000} minutes`;
  throw new WorkFailure("command_not_started", `the image of the work could not be fetched: ${why}`);
}
