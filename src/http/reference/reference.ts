import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import { type ReportFault, writeConnectError } from "../../rpc/error/error.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { type Dispatch, withErrorResponses, writeError } from "../dispatch/dispatch.ts";
import { writeWhole } from "../output/node-response.ts";
import type { DocumentView } from "./document.ts";
import { failuresPage, indexPage, servicePage } from "./operation-pages.ts";
import { schemaPage } from "./schema-page.ts";

const PATH = /^\/(?:openapi\.json|docs\/api(?:\/[^?]*)?)(?:\?|$)/;
const DOCUMENT_FILE = join(import.meta.dirname, "../../../gen/openapi.json");
const PAGES = "/docs/api";
const TYPES = `${PAGES}/types/`;

/** Operation name in the access log, which contains nothing from the request. */
const OPERATION = "reference";

/** A short cache time, since an upgrade may change the pages; revalidation by ETag is cheap. */
const CACHING = "public, max-age=300";

const HTML = "text/html; charset=utf-8";

/** The files of the pages. */
const FILES: Readonly<Record<string, string>> = {
  "reference.css": "text/css; charset=utf-8",
  "reference.js": "text/javascript; charset=utf-8",
};

/** Pages load their own two files, and send searches to the first of them. */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

/** A cached file or page, compressed, since nearly every browser accepts that. */
interface Packed {
  readonly type: string;
  readonly bytes: Uint8Array;
  readonly tag: string;
  /**
   * Returns it unpacked. All responses in progress share these bytes. If each had a copy, a client without a token
   * that sends many requests and reads nothing could fill the memory.
   */
  readonly unpacked: () => Promise<Uint8Array>;
}

/** Returns whether a request is for the OpenAPI document or a page generated from it. */
export function isReference({ method, url = "" }: HttpRequest): boolean {
  return (method === "GET" || method === "HEAD") && PATH.test(url);
}

/**
 * Creates the dispatch of /openapi.json and of the pages under /docs/api, which need no token. The document is read at
 * the first request, and a page is generated at the first request for it. Both are cached compressed.
 */
export function createReferenceDispatch(report: ReportFault, file = DOCUMENT_FILE): Dispatch {
  const kept = new Map<string, Promise<Packed | undefined>>();
  let document: Promise<DocumentView> | undefined;
  const parsed = () => {
    document ??= readFile(file, "utf8").then((text) => JSON.parse(text) as DocumentView);
    // A failed read, for example when no file could be opened, is retried with the next request.
    document.catch(() => {
      document = undefined;
    });
    return document;
  };
  const make = async (path: string): Promise<Packed | undefined> => {
    if (path === "/openapi.json") return pack("application/json", await readFile(file));
    const name = path.slice(PAGES.length + 1);
    const type = Object.hasOwn(FILES, name) ? FILES[name] : undefined;
    if (type) return pack(type, await readFile(join(import.meta.dirname, "page", name)));
    const page = pageOf(await parsed(), path);
    return page === undefined ? undefined : pack(HTML, Buffer.from(page));
  };
  const serve = async (req: HttpRequest, res: HttpResponse, record: CallRecord): Promise<void> => {
    record.operation = OPERATION;
    const path = (req.url ?? "").replace(/\?.*/, "").replace(/(?<=.)\/$/, "");
    let found = kept.get(path);
    if (!found) {
      found = make(path);
      kept.set(path, found);
      // A missing or unreadable page is not cached: clients choose the paths, so the cache would grow without bound.
      const forget = () => kept.delete(path);
      found.then((page) => page ?? forget(), forget);
    }
    const packed = await found;
    if (packed) return write(req, res, record, packed);
    const error = writeConnectError(ErrorReason.OPERATION_UNKNOWN, "nothing is served under this path");
    writeError(res, record, error, 404, { "cache-control": "no-store" });
  };
  return withErrorResponses(serve, report);
}

/** Returns the page of a path; undefined where there is none. */
function pageOf(document: DocumentView, path: string): string | undefined {
  if (path === PAGES) return indexPage(document);
  if (path === `${PAGES}/failures`) return failuresPage(document);
  if (path.startsWith(TYPES)) return schemaPage(document, path.slice(TYPES.length));
  return servicePage(document, path.slice(PAGES.length + 1));
}

async function pack(type: string, bytes: Uint8Array): Promise<Packed> {
  const tag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
  const packed = await promisify(gzip)(bytes);
  return { type, bytes: packed, tag, unpacked: sharedWhileUsed(() => promisify(gunzip)(packed)) };
}

/** Returns a function that creates a value once for all current users, and again when nobody references it any more. */
function sharedWhileUsed<T extends object>(make: () => Promise<T>): () => Promise<T> {
  let made: WeakRef<T> | undefined;
  let making: Promise<T> | undefined;
  const makeAgain = async (): Promise<T> => {
    try {
      const value = await make();
      made = new WeakRef(value);
      return value;
    } finally {
      making = undefined;
    }
  };
  return async () => {
    const known = made?.deref();
    if (known) return known;
    making ??= makeAgain();
    return making;
  };
}

async function write(req: HttpRequest, res: HttpResponse, record: CallRecord, packed: Packed): Promise<void> {
  const header = new Headers({
    "cache-control": CACHING,
    etag: packed.tag,
    // It may already contain Origin, when pages of other origins may read the response.
    vary: [res.getHeader("vary") ?? [], "Accept-Encoding"].flat().join(", "),
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
  });
  if (req.headers["if-none-match"] === packed.tag) {
    return writeWhole(res, 304, header, new Uint8Array(), record.output);
  }
  header.set("content-type", packed.type);
  const takesPacked = /\bgzip\b/.test(String(req.headers["accept-encoding"] ?? ""));
  if (takesPacked) header.set("content-encoding", "gzip");
  if (req.method === "HEAD") return writeWhole(res, 200, header, new Uint8Array(), record.output);
  const body = takesPacked ? packed.bytes : await packed.unpacked();
  return writeWhole(res, 200, header, body, record.output);
}
