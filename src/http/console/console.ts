import { randomBytes } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import { type ReportFault, writeConnectError } from "../../rpc/error/error.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { type Dispatch, withErrorResponses, writeError } from "../dispatch/dispatch.ts";
import { writeWhole } from "../output/node-response.ts";
import { type SessionOrigin, sessionRedirect } from "../sign-in/session-origin.ts";

/** The first parts of the console's addresses; everything else is as unknown as it was without a console. */
const SECTIONS = [
  "account",
  "agents",
  "approvals",
  "executions",
  "organization",
  "projects",
  "runners",
  "workflows",
];

const ASSETS = "/assets/";
const PATH = new RegExp(`^/(?:(?:${SECTIONS.join("|")})(?:/[^?]*)?|assets/[^?]+)?(?:\\?|$)`);

/** Name in the access log: it contains nothing of a request. */
const OPERATION = "console";

/** Names of assets hold the hash of their content, so that what a browser has never changes. */
const IMMUTABLE = "public, max-age=31536000, immutable";

/**
 * Policy of what the page may load: its own files, and style elements with the nonce of the answer, which Mantine makes for its
 * variables and @pierre/diffs for its theme. Style attributes are allowed because of @pierre/diffs alone, which writes the
 * colours of words and the heights of rows into them; what React sets are properties, which no policy is about.
 */
const contentPolicy = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src-elem 'self' 'nonce-${nonce}'`,
    "style-src-attr 'unsafe-inline'",
    "worker-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");

const NOT_BUILT = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Chartroom</title></head>
<body>
<h1>Chartroom</h1>
<p>The server is running; its console has not been built. In the folder of Chartroom, run</p>
<pre>npm ci &amp;&amp; npm run build</pre>
<p>and load this page again. The server need not be restarted. Everything else works without the console: see
docs/command-line.md and docs/clients.md.</p>
</body>
</html>
`;

export interface ConsoleOptions {
  /** The folder of the built files; it may be missing. */
  readonly folder: string;
  readonly sessionOrigin: () => SessionOrigin;
  readonly report: ReportFault;
}

/** Returns whether a request is for a page of the console or one of its files. */
export function isConsole({ method, url = "" }: HttpRequest): boolean {
  return (method === "GET" || method === "HEAD") && PATH.test(url);
}

/** Creates the dispatch of the console: each of its addresses answers the one page, which loads hashed files. */
export function createConsoleDispatch({ folder, sessionOrigin, report }: ConsoleOptions): Dispatch {
  const files = createConsoleFiles(folder);
  const serve = async (req: HttpRequest, res: HttpResponse, record: CallRecord): Promise<void> => {
    record.operation = OPERATION;
    const isHead = req.method === "HEAD";
    const write = (status: number, header: Headers, body: Uint8Array | string) =>
      writeWhole(res, status, header, isHead ? new Uint8Array() : Buffer.from(body), record.output);
    const path = (req.url ?? "").replace(/\?.*/, "");
    if (path.startsWith(ASSETS)) {
      const asset = (await files())?.assets.get(path.slice(ASSETS.length));
      if (!asset) {
        const error = writeConnectError(ErrorReason.OPERATION_UNKNOWN, "nothing is served under this path");
        return writeError(res, record, error, 404, { "cache-control": "no-store" });
      }
      const header = headerOf(asset.type, IMMUTABLE);
      header.set("vary", "Accept-Encoding");
      const isPacked = asset.packed && /\bgzip\b/.test(String(req.headers["accept-encoding"] ?? ""));
      if (isPacked) header.set("content-encoding", "gzip");
      return write(200, header, isPacked && asset.packed ? asset.packed : asset.bytes);
    }
    const nonce = randomBytes(16).toString("base64url");
    const header = headerOf("text/html; charset=utf-8", "no-store");
    header.set("content-security-policy", contentPolicy(nonce));
    const elsewhere = sessionRedirect(req, sessionOrigin(), req.url ?? "/");
    if (elsewhere) {
      header.set("location", elsewhere);
      return write(302, header, "");
    }
    const page = (await files())?.page ?? NOT_BUILT;
    return write(200, header, page.replaceAll(NONCE_PLACE, nonce));
  };
  return withErrorResponses(serve, report);
}

function headerOf(type: string, caching: string): Headers {
  return new Headers({
    "content-type": type,
    "cache-control": caching,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
  });
}

/** A built file as browsers get it. */
interface ConsoleFile {
  readonly type: string;
  readonly bytes: Uint8Array;
  /** The same packed with gzip, where that is shorter. */
  readonly packed?: Uint8Array | undefined;
}

/** The files that `npm run build` has made. */
interface ConsoleFiles {
  /** The page, in which {@link NONCE_PLACE} is replaced by the nonce of an answer. */
  readonly page: string;
  /** The files under /assets, by their names, each of which holds the hash of its content. */
  readonly assets: ReadonlyMap<string, ConsoleFile>;
}

/** The place in the built page where each answer has its nonce. */
const NONCE_PLACE = "__NONCE__";

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/**
 * Creates the reader of the built files, which it reads once and keeps. Until they have been built it looks again
 * each time, so that a running server shows them without a restart.
 *
 * @returns undefined from the reader where nothing was built
 */
function createConsoleFiles(folder: string): () => Promise<ConsoleFiles | undefined> {
  let files: Promise<ConsoleFiles | undefined> | undefined;
  return async () => {
    files ??= readFiles(folder);
    const found = await files.catch(() => undefined);
    if (!found) files = undefined;
    return found;
  };
}

async function readFiles(folder: string): Promise<ConsoleFiles | undefined> {
  const page = join(folder, "index.html");
  if (!(await stat(page).catch(() => undefined))) return undefined;
  const names = await readdir(join(folder, "assets"));
  const read = (name: string) => readFile(join(folder, "assets", name));
  const assets = names
    .filter((name) => extname(name) in TYPES)
    .map(async (name): Promise<readonly [string, ConsoleFile]> => {
      const packed = names.includes(`${name}.gz`) ? await read(`${name}.gz`) : undefined;
      return [name, { type: TYPES[extname(name)] ?? "", bytes: await read(name), packed }];
    });
  return { page: await readFile(page, "utf8"), assets: new Map(await Promise.all(assets)) };
}
