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
/** The folders of the machine in which Node finds its libraries, whatever the image has. */
const LIBRARIES = ["/usr", "/lib", "/lib64"];
const FIRST_FREE_PORT = 1_024;
/** Memory without which Node does not start: it reserves more than it uses. */
const FORWARDER_BYTES = 2 ** 30;
/** Longer than an engine takes to fetch a large image. */
const MAX_FETCH_MS = 15 * 60_000;
const MAX_OPENING_MS = MAX_FETCH_MS;

/** Returns the name of the container whose network commands have. @throws WorkFailure command_not_started */
export type NetworkName = () => Promise<string>;

/**
 * Opens a network that has nothing but a loopback, in a container of its own in which only a forwarder runs that listens
 * for the runner's proxy. It ends with the work. Its image is that of the runner's operator: the variables and the linker's
 * settings of another would have the machine's Node run what they name, outside the limits of the work and with the machine's folders.
 *
 * @param parts those of the work, with the image of the operator
 * @param remove ends a container
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
  // Commands learn of it, if any is run.
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
    // Otherwise it would make a container as soon as it has fetched the image.
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
 * Has the engine fetch an image, unless it has it.
 *
 * @param ended ends that with the work
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
