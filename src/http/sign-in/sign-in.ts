import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Admission } from "../../rpc/access/admission.ts";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import { type ReportFault, writeConnectError } from "../../rpc/error/error.ts";
import type { SignIn } from "../../services/identity/sign-in.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { type Dispatch, withErrorResponses, writeError } from "../dispatch/dispatch.ts";
import { edgeStatus } from "../dispatch/edge-status.ts";
import { writeWhole } from "../output/node-response.ts";
import { type DeviceOptions, deviceRoutes } from "./device.ts";
import { type MachineOptions, machineRoutes } from "./machine.ts";
import { type OrganizationOptions, organizationRoutes } from "./organization.ts";
import {
  pageHeader,
  presentCaller,
  readPageRequest,
  redirect,
  requireOwnPage,
  requireSafe,
  SIGN_IN_OPERATION,
  type SignInAct,
  writeJson,
  wrongMethod,
} from "./page-request.ts";
import { type ProviderOptions, providerRoute } from "./provider.ts";
import { sessionCookie } from "./session-cookie.ts";
import { type SessionOrigin, sessionRedirect } from "./session-origin.ts";

const PATH = /^\/sign-in(?:\/[^?]*)?(?:\?|$)/;

/** The files of the pages, by their paths. */
const FILES: Readonly<Record<string, readonly [name: string, type: string]>> = {
  "/sign-in": ["sign-in.html", "text/html; charset=utf-8"],
  "/sign-in/sign-in.js": ["sign-in.js", "text/javascript; charset=utf-8"],
  "/sign-in/device": ["device.html", "text/html; charset=utf-8"],
  "/sign-in/device.js": ["device.js", "text/javascript; charset=utf-8"],
  "/sign-in/sign-in.css": ["sign-in.css", "text/css; charset=utf-8"],
};

export interface SignInOptions extends ProviderOptions, DeviceOptions, MachineOptions, OrganizationOptions {
  readonly signIn: SignIn;
  readonly admission: Admission;
  readonly sessionOrigin: () => SessionOrigin;
  /** Returns milliseconds since 1970 UTC. */
  readonly now: () => number;
  readonly report: ReportFault;
}

/** The handler of a path, its method, and whether only the server's own page may call it. */
export interface SignInRoute {
  readonly method: "GET" | "POST";
  readonly ownPage: boolean;
  readonly act: SignInAct;
}

/** Returns whether a request is for the sign-in page or a path that it calls. */
export function isSignIn(req: HttpRequest): boolean {
  return PATH.test(req.url ?? "");
}

/**
 * Creates the dispatch of the sign-in page: its files, `POST /sign-in/person`, which names the person whom a secret
 * would sign in, `POST /sign-in/session`, which signs the person in, and the paths of sign-in providers, devices,
 * machines and organizations. Errors have the form of Connect's JSON errors, except where a protocol defines its own.
 */
export function createSignInDispatch(options: SignInOptions): Dispatch {
  const own = (act: SignInAct): SignInRoute => ({ method: "POST", ownPage: true, act });
  const routes: Readonly<Record<string, SignInRoute>> = {
    "/sign-in/person": own((req, res, record) => namePerson(options, req, res, record)),
    "/sign-in/session": own((req, res, record) => beginSession(options, req, res, record)),
    ...deviceRoutes(options),
    ...machineRoutes(options),
    ...organizationRoutes(options),
  };
  const routeOf = (path: string) =>
    Object.hasOwn(routes, path) ? routes[path] : providerRoute(options, path);
  return withErrorResponses(
    async (req, res, record) => {
      record.operation = SIGN_IN_OPERATION;
      const path = (req.url ?? "").replace(/\?.*/, "");
      const file = FILES[path];
      if (file) return servePage(options, path, file, req, res, record);
      const route = routeOf(path);
      if (!route) {
        const error = writeConnectError(ErrorReason.OPERATION_UNKNOWN, "nothing is served under this path");
        return writeError(res, record, error, 404);
      }
      const { method, ownPage, act } = route;
      if (req.method !== method) {
        return writeError(res, record, wrongMethod(method), 405, { allow: method });
      }
      options.admission.requireOpen();
      if (ownPage) requireOwnPage(req, options.sessionOrigin());
      return act(req, res, record);
    },
    options.report,
    edgeStatus,
  );
}

async function servePage(
  { sessionOrigin }: SignInOptions,
  path: string,
  [name, type]: readonly [string, string],
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  if (req.method !== "GET" && req.method !== "HEAD") {
    return writeError(res, record, wrongMethod("GET"), 405, { allow: "GET, HEAD" });
  }
  const elsewhere = name.endsWith(".html") ? sessionRedirect(req, sessionOrigin(), path) : undefined;
  if (elsewhere) {
    return redirect(res, record, elsewhere);
  }
  const bytes = req.method === "HEAD" ? new Uint8Array() : pageFile(name);
  await writeWhole(res, 200, pageHeader(type), bytes, record.output);
}

async function namePerson(
  { signIn, admission, providers }: SignInOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  const { secret } = await readPageRequest(req, { secret: "", replace: false });
  const present = await presentCaller(admission, req);
  const person = secret === "" ? undefined : await signIn.findPerson(secret);
  const signedIn = present && (await signIn.findPersonOf(present));
  await writeJson(res, record, {
    ...(person && { person }),
    ...(signedIn && { signedIn }),
    providers: providers().map(({ rules: { id }, name }) => ({ id, name })),
  });
}

async function beginSession(
  { signIn, admission, sessionOrigin, now }: SignInOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  requireSafe(sessionOrigin());
  const { secret, replace } = await readPageRequest(req, { secret: "", replace: false });
  const present = await presentCaller(admission, req);
  const { value, endsAt } = await signIn.begin(secret, present, replace);
  res.setHeader("set-cookie", sessionCookie(value, Math.floor((endsAt - now()) / 1000)));
  await writeJson(res, record, {});
}

const pages = new Map<string, Uint8Array>();

/** Returns a file of the page, which is read once. */
function pageFile(name: string): Uint8Array {
  let bytes = pages.get(name);
  if (!bytes) {
    bytes = readFileSync(join(import.meta.dirname, "page", name));
    pages.set(name, bytes);
  }
  return bytes;
}
