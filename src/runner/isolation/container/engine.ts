import { spawn } from "node:child_process";
import type { Engine } from "./container-arguments.ts";

/** Returns the variables of the engine's program, of those of the runner: nothing of the work. */
export function engineEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const { PATH = "/usr/bin:/bin", HOME = "/", XDG_RUNTIME_DIR, DOCKER_HOST } = env;
  return {
    ...{ PATH, HOME },
    ...(XDG_RUNTIME_DIR && { XDG_RUNTIME_DIR }),
    ...(DOCKER_HOST && { DOCKER_HOST }),
  };
}

/** The time in which an engine that works has done what it is asked: one that hangs must not hold up the end of work. */
const MAX_ENGINE_MS = 60_000;

/**
 * Runs the engine to its end; what it prints, and whether it ended well.
 *
 * @param options.timeoutMs the time after which it is ended; a minute when absent
 * @param options.signal ends it
 * @param options.mostCharacters how much of what it prints is kept, about; 10,000 when absent
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
