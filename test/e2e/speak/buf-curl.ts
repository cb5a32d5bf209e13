import { execFile } from "node:child_process";
import { join } from "node:path";
import { failureFromJson, type Speak } from "./outcome.ts";

const root = join(import.meta.dirname, "../../..");

/** What a run of buf's command line came to. */
export interface BufRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `buf curl` to its end. */
export function bufCurl(args: readonly string[]): Promise<BufRun> {
  return new Promise((resolve) => {
    const buf = join(root, "node_modules/.bin/buf");
    execFile(buf, ["curl", ...args], { cwd: root }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
  });
}

/** `buf curl` with these flags: the protocol, and where the schema comes from. */
export function speakBufCurl(baseUrl: string, token: string, flags: readonly string[]): Speak {
  return async (operation, request) => {
    const { code, stdout, stderr } = await bufCurl([
      ...flags,
      "--http2-prior-knowledge",
      "--emit-defaults",
      ...["--header", `Authorization: Bearer ${token}`],
      ...["--data", JSON.stringify(request)],
      `${baseUrl}/service.v1.ProjectService/${operation}`,
    ]);
    if (code === 0) return { answer: withoutNulls(JSON.parse(stdout)) };
    if (!stderr.startsWith("{")) throw new Error(`buf curl ended with ${code}: ${stderr}`);
    return failureFromJson(JSON.parse(stderr));
  };
}

/** It writes unset messages as null; the server leaves them out. */
function withoutNulls(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_, each) => (each === null ? undefined : each));
}
