import { spawn } from "node:child_process";
import type { Engine } from "./container-arguments.ts";

/** Returns those of the runner's environment variables that the engine's program gets; none come from the work. */
export function engineEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const { PATH = "/usr/bin:/bin", HOME = "/", XDG_RUNTIME_DIR, DOCKER_HOST } = env;
  return {
    ...{ PATH, HOME },
    ...(XDG_RUNTIME_DIR && { XDG_RUNTIME_DIR }),
    ...(DOCKER_HOST && { DOCKER_HOST }),
  };
}

/** Timeout of an engine call: a hanging engine must not delay the end of work. */
const MAX_ENGINE_MS = 60_000;

/**
 * Runs the engine to its end. Returns its output and whether it succeeded.
 *
 * @param options.timeoutMs the timeout; a minute when absent
 * @param options.signal stops it
 * @param options.mostCharacters approximate limit of the output to keep; 10,000 when absent
 */
export function runEngine(
  engine: Pick<Engine, "file" | "environment">,
  args: readonly string[],
  {
    timeoutMs = MAX_ENGINE_MS,
    signal,
    mostCharacters = 10_000,
  }: { readonly timeoutMs?: number; readonly signal?: AbortSignal; readonly mostCharacters?: number } = {},
): Promise<{ readonly isDone: boolean; readonly text: string }> {
  return new Promise((resolve) => {
    const child = spawn(engine.file, [...args], {
      cwd: "/",
      env: engine.environment,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: timeoutMs,
      killSignal: "SIGKILL",
      ...(signal && { signal }),
    });
    let text = "";
    const add = (bytes: Buffer) => {
      if (text.length < mostCharacters) text += bytes;
    };
    child.stdout.on("data", add);
    child.stderr.on("data", add);
    child.once("error", (error) => resolve({ isDone: false, text: error.message }));
    child.once("close", (code) => resolve({ isDone: code === 0, text: text.trim() }));
  });
}
