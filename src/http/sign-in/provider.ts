import type { Keys } from "../../keys.ts";
import type { Admission } from "../../rpc/access/admission.ts";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import {
  type ProviderClaims,
  type ProviderLogoutClaims,
  type ProviderSignIn,
  type SignInProblem,
  SignInRefused,
  type SignInRules,
} from "../../services/access/sign-in/provider-sign-in.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import {
  presentCaller,
  readForm,
  readPageRequest,
  redirect,
  type SignInAct,
  writeJson,
} from "./page-request.ts";
import { cookieIn, flowCookie, noFlowCookie, sessionCookie } from "./session-cookie.ts";
import type { SessionOrigin } from "./session-origin.ts";
import type { SignInRoute } from "./sign-in.ts";

/** The state that the browser keeps, sealed, from the beginning of a sign-in to its end. */
interface Flow {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** A provider in the settings, with the client that calls it. */
export interface ServedProvider {
  readonly name: string;
  readonly issuer: string;
  readonly rules: SignInRules;
  readonly client: {
    begin(redirectUri: string): Promise<{ readonly url: string; readonly flow: Flow }>;
    finish(answer: URL, flow: Flow): Promise<ProviderClaims>;
    readLogout(token: string): Promise<ProviderLogoutClaims>;
  };
}

export interface ProviderOptions {
  /** Returns the providers in the settings, which can change while the server runs. */
  readonly providers: () => readonly ServedProvider[];
  readonly providerSignIn: ProviderSignIn;
  readonly keys: Keys;
  readonly admission: Admission;
  readonly sessionOrigin: () => SessionOrigin;
  /** Returns milliseconds since 1970 UTC. */
  readonly now: () => number;
  /** Reports to the operator why a sign-in through a provider failed. */
  readonly onProviderFailure: (providerId: string, problem: string, cause: unknown) => void;
}

/** Maximum time from the click on the button to the provider's response. */
const FLOW_MS = 10 * 60_000;

/** Maximum bytes of a request with a logout token. */
const MAX_LOGOUT_BYTES = 16 * 1024;

/**
 * Returns the route of a provider's path: `POST /sign-in/begin/<id>`, which the page calls,
 * `GET /sign-in/callback/<id>`, to which the provider sends the browser, and `POST /sign-in/logout/<id>`, which the
 * provider itself calls.
 */
export function providerRoute(options: ProviderOptions, path: string): SignInRoute | undefined {
  const [, act, id] = /^\/sign-in\/(begin|callback|logout)\/([a-z0-9-]+)$/.exec(path) ?? [];
  const provider = options.providers().find(({ rules }) => rules.id === id);
  if (!provider) return undefined;
  const route = (method: "GET" | "POST", ownPage: boolean, answer: typeof begin): SignInRoute => {
    const bound: SignInAct = (req, res, record) => answer(options, provider, req, res, record);
    return { method, ownPage, act: bound };
  };
  if (act === "begin") return route("POST", true, begin);
  return act === "callback" ? route("GET", false, finish) : route("POST", false, logout);
}

/** Responds with the URL to which the page sends the browser, and binds the provider's response to this browser. */
async function begin(
  options: ProviderOptions,
  provider: ServedProvider,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  const { replace } = await readPageRequest(req, { replace: false });
  const own = options.sessionOrigin();
  try {
    if (!own.isSafe) throw new SignInRefused("no_tls");
    const { url, flow } = await provider.client.begin(callbackOf(own, provider));
    const kept = JSON.stringify({ ...flow, replace, until: options.now() + FLOW_MS });
    const { keyId, sealed } = options.keys.seal(kept, placeOf(provider));
    const value = `${keyId}.${Buffer.from(sealed).toString("base64url")}`;
    res.setHeader("set-cookie", flowCookie(value, FLOW_MS / 1000));
    await writeJson(res, record, { url });
  } catch (error) {
    await writeJson(res, record, { problem: problemOf(options, provider, error) });
  }
}

/** Completes a sign-in. Always redirects to the sign-in page, whatever the outcome and the content of the request. */
async function finish(
  options: ProviderOptions,
  provider: ServedProvider,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  const own = options.sessionOrigin();
  const cookies = [noFlowCookie()];
  let place = `${own.base}/sign-in`;
  try {
    const { replace, ...flow } = readFlow(options, provider, req);
    const answer = new URL(callbackOf(own, provider));
    answer.search = /\?.*/.exec(req.url ?? "")?.[0] ?? "";
    const claims = await provider.client.finish(answer, flow);
    const present = await presentCaller(options.admission, req);
    const begun = await options.providerSignIn.begin(provider.rules, claims, present, replace);
    cookies.push(sessionCookie(begun.value, Math.floor((begun.endsAt - options.now()) / 1000)));
  } catch (error) {
    place += `?problem=${problemOf(options, provider, error)}`;
  }
  res.setHeader("set-cookie", cookies);
  await redirect(res, record, place);
}

/** Ends the sessions that a logout token names, as OpenID Connect Back-Channel Logout specifies. */
async function logout(
  { providerSignIn, onProviderFailure }: ProviderOptions,
  { rules, issuer, client }: ServedProvider,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  const form = await readForm(req, res, record, MAX_LOGOUT_BYTES);
  if (!form) return;
  const token = form.get("logout_token") ?? "";
  let ended: ProviderLogoutClaims;
  try {
    ended = await client.readLogout(token);
  } catch (error) {
    onProviderFailure(rules.id, "logout_refused", error);
    return writeJson(res, record, { error: "invalid_request" }, 400);
  }
  await providerSignIn.end({ ...ended, issuer });
  await writeJson(res, record, {});
}

/** Returns the sign-in that this browser began with this provider. @throws SignInRefused for none, or an expired one */
function readFlow(
  { keys, now }: ProviderOptions,
  provider: ServedProvider,
  req: HttpRequest,
): Flow & { readonly replace: boolean } {
  const [keyId = "", sealed = ""] = cookieIn(req.headers.cookie, "flow")?.split(".") ?? [];
  try {
    const { until, ...flow } = JSON.parse(
      keys.open(keyId, Buffer.from(sealed, "base64url"), placeOf(provider)),
    );
    if (until > now()) return flow;
  } catch {
    // Missing, made for another provider, or modified: all are treated alike.
  }
  throw new SignInRefused("expired");
}

function problemOf(
  { onProviderFailure }: ProviderOptions,
  { rules }: ServedProvider,
  error: unknown,
): SignInProblem {
  if (!(error instanceof SignInRefused)) throw error;
  onProviderFailure(rules.id, error.problem, error.cause);
  return error.problem;
}

function callbackOf({ base }: SessionOrigin, { rules }: ServedProvider): string {
  return `${base}/sign-in/callback/${rules.id}`;
}

/** Returns associated data that binds the sealed state to one provider, so that responses cannot be mixed up. */
function placeOf({ rules, issuer }: ServedProvider) {
  return { table: "sign_in_flow", row: `${rules.id} ${issuer}`, column: "cookie" };
}
