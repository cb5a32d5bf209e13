// A sign-in provider as a process of its own: oidc-provider, controlled by lines of JSON on the standard input. The first line
// has the options; each later one is a request, answered by a line. @see test/harness/provider.ts
import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const next = async () => JSON.parse((await lines.next()).value);
const print = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

const { port, clients, ttl } = await next();
let skewMs = 0;
const realNow = Date.now.bind(Date);
// The provider's clock, and nothing else of the process, goes by Date.now.
Date.now = () => realNow() + skewMs;
console.warn = console.info = () => undefined;

const { default: Provider } = await import("oidc-provider");
const accounts = new Map();
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients,
  // Its own refuses addresses of this machine, where the server of the test is.
  fetch: (url, { method, headers, body, signal }) => fetch(url, { method, headers, body, signal }),
  ttl: {
    IdToken: ttl,
    AccessToken: 3600,
    AuthorizationCode: 600,
    Interaction: 600,
    Session: 3600,
    Grant: 3600,
  },
  scopes: ["openid", "email", "profile"],
  claims: { openid: ["sub", "groups", "teams"], email: ["email", "email_verified"], profile: ["name"] },
  features: {
    devInteractions: { enabled: false },
    backchannelLogout: { enabled: true },
    // Machines get tokens for the audience that they name (RFC 8707), signed and in the form of RFC 9068.
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({
        scope: "",
        audience: resource.replace(/^urn:/, ""),
        accessTokenTTL: 600,
        accessTokenFormat: "jwt",
      }),
    },
  },
  pkce: { required: () => true },
  interactions: { url: (_, { uid }) => `/interaction/${uid}` },
  findAccount: (_, id) =>
    accounts.has(id) && { accountId: id, claims: () => ({ sub: id, ...accounts.get(id) }) },
});

// The person at the provider: the one whom the address names is there, and agrees.
provider.use(async (ctx, nextPart) => {
  if (!ctx.path.startsWith("/interaction/")) return nextPart();
  const { prompt, params, session } = await provider.interactionDetails(ctx.req, ctx.res);
  let result;
  if (params.login_hint === "nobody") result = { error: "access_denied" };
  else if (prompt.name === "login") result = { login: { accountId: params.login_hint } };
  else {
    const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope("openid email profile");
    result = { consent: { grantId: await grant.save() } };
  }
  ctx.respond = false;
  await provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: true });
});

const server = provider.listen(port, "127.0.0.1", () => print({ ready: true }));
// It says that it closes each connection: one that it closed unsaid would meet the next request.
server.maxRequestsPerSocket = 1;
for (;;) {
  const { set, logout, clock } = await next();
  if (clock !== undefined) skewMs = clock;
  if (set) accounts.set(set.id, set.claims);
  if (logout) {
    const client = await provider.Client.find(logout.clientId);
    await client.backchannelLogout(logout.subject, logout.sid);
  }
  print({ done: true });
}
