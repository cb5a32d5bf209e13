import type { Admission } from "../../rpc/access/admission.ts";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import type { OrganizationSwitch } from "../../services/access/sign-in/organization-switch.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { presentCaller, readPageRequest, requireSafe, type SignInAct, writeJson } from "./page-request.ts";
import type { ServedProvider } from "./provider.ts";
import { sessionCookie } from "./session-cookie.ts";
import type { SessionOrigin } from "./session-origin.ts";
import type { SignInRoute } from "./sign-in.ts";

export interface OrganizationOptions {
  readonly organizationSwitch: OrganizationSwitch;
  readonly admission: Admission;
  readonly providers: () => readonly ServedProvider[];
  readonly sessionOrigin: () => SessionOrigin;
  /** Returns milliseconds since 1970 UTC. */
  readonly now: () => number;
}

/**
 * Returns the routes with which a signed-in person switches between organizations. `POST /sign-in/organizations` lists
 * the person's organizations, and `POST /sign-in/organization` replaces the current session by one in another of them.
 * `POST /sign-in/invite` is open to everyone with an invite: it returns the invite's organization and the providers
 * with which people can join it.
 */
export function organizationRoutes(options: OrganizationOptions): Readonly<Record<string, SignInRoute>> {
  const own = (act: SignInAct): SignInRoute => ({ method: "POST", ownPage: true, act });
  return {
    "/sign-in/organizations": own((req, res, record) => list(options, req, res, record)),
    "/sign-in/organization": own((req, res, record) => begin(options, req, res, record)),
    "/sign-in/invite": own((req, res, record) => nameInvite(options, req, res, record)),
  };
}

async function list(
  { organizationSwitch, admission, providers }: OrganizationOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  await readPageRequest(req, {});
  const present = await presentCaller(admission, req);
  const served = providers();
  const organizations = await organizationSwitch.list(present, served);
  await writeJson(res, record, {
    organizations: organizations.map(({ id, name, isCurrent: current, providerIds }) => ({
      ...{ id, name, current },
      providers: served
        .filter(({ rules }) => providerIds.includes(rules.id))
        .map((provider) => ({ id: provider.rules.id, name: provider.name })),
    })),
  });
}

async function begin(
  { organizationSwitch, admission, providers, sessionOrigin, now }: OrganizationOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  requireSafe(sessionOrigin());
  const { organizationId } = await readPageRequest(req, { organizationId: "" });
  const present = await presentCaller(admission, req);
  const { value, endsAt } = await organizationSwitch.begin(
    present,
    organizationId.toLowerCase(),
    providers(),
  );
  res.setHeader("set-cookie", sessionCookie(value, Math.floor((endsAt - now()) / 1000)));
  await writeJson(res, record, {});
}

async function nameInvite(
  { organizationSwitch, providers }: OrganizationOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  const { inviteId } = await readPageRequest(req, { inviteId: "" });
  const { organizationId, organizationName: organization } = await organizationSwitch.findInvite(
    inviteId.toLowerCase(),
  );
  const own = providers().filter(({ rules }) => rules.organizationId === organizationId);
  await writeJson(res, record, { organization, providerIds: own.map(({ rules }) => rules.id) });
}
