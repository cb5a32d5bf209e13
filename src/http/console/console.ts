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

/** The first path segments of the console's pages; every other path is handled as if there were no console. */
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

/** Operation name in the access log, which contains nothing from the request. */
const OPERATION = "console";

/** For assets: their names contain the hash of their content, so a cached copy never becomes stale. */
const IMMUTABLE = "public, max-age=31536000, immutable";

/**
 * Returns the Content-Security-Policy of the page. It may load its own files, and style elements with the nonce of the
 * response, which Mantine creates for its variables and @pierre/diffs for its theme. Style attributes are allowed only
 * for @pierre/diffs, which writes colours of words and heights of rows into them; React sets style properties, to which
 * no policy applies.
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

/** Creates the dispatch of the console: every page path returns the same HTML page, which loads hashed files. */
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

/** A built file as it is sent to browsers. */
interface ConsoleFile {
  readonly type: string;
  readonly bytes: Uint8Array;
  /** The content compressed with gzip, when that is smaller. */
  readonly packed?: Uint8Array | undefined;
}

/** The files that `npm run build` creates. */
interface ConsoleFiles {
  /** The page, in which {@link NONCE_PLACE} is replaced by the nonce of the response. */
  readonly page: string;
  /** The files under /assets by name; each name contains the hash of the content. */
  readonly assets: ReadonlyMap<string, ConsoleFile>;
}

/** The placeholder for the nonce in the built page. */
const NONCE_PLACE = "__NONCE__";

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/**
 * Creates the reader of the built files. It reads them once and caches them. Until they have been built, each call
 * looks for them, so that a running server shows them without a restart.
 *
 * @returns the reader, which returns undefined when nothing was built
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
