import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "./free-port.ts";
import { startFile } from "./node-process.ts";
import type { ReachableServer } from "./server.ts";
import { originOf } from "./session.ts";

export const CLIENT_ID = "chartroom";
const CLIENT_SECRET = "the secret of chartroom at the provider";

/** A sign-in provider in a process of its own. */
export interface TestProvider {
  readonly issuer: string;
  /** Tells it of a person, or changes what it says of one. */
  set(id: string, claims: object): Promise<void>;
  /** Sets how far its clock is ahead of ours. */
  setClock(aheadMs: number): Promise<void>;
  /** Lets it end a person's session, of which it tells its clients. */
  logout(subject: string, sid?: string): Promise<void>;
  /** Returns a token for an audience that it gives a machine: its client, by the client's secret. */
  machineToken(audience: string): Promise<string>;
}

export interface ProviderOptions {
  /** The server whose people it signs in, by its port, and its name for this provider. */
  readonly serverPort: number;
  readonly id: string;
  /** Seconds for which its ID tokens hold; default 3600. */
  readonly ttl?: number;
}

/** Starts a provider that knows one server as its client; `endNodes` ends it. */
export async function startProvider(options: ProviderOptions): Promise<TestProvider> {
  const { serverPort, id, ttl = 3600 } = options;
  const port = await freePort();
  const child = startFile(join(import.meta.dirname, "provider-process.mjs"), [], {});
  const client = {
    client_id: CLIENT_ID,
    client_secret: CLIENT_SECRET,
    redirect_uris: [`http://chartroom.localhost:${serverPort}/sign-in/callback/${id}`],
    // The name resolves in browsers; the provider asks by address.
    backchannel_logout_uri: `http://127.0.0.1:${serverPort}/sign-in/logout/${id}`,
    backchannel_logout_session_required: true,
    grant_types: ["authorization_code", "client_credentials"],
  };
  const ask = async (request: object) => {
    child.send(JSON.stringify(request));
    await child.next();
  };
  await ask({ port, clients: [client], ttl });
  return {
    issuer: `http://127.0.0.1:${port}`,
    set: (subject, claims) => ask({ set: { id: subject, claims } }),
    setClock: (aheadMs) => ask({ clock: aheadMs }),
    logout: (subject, sid) => ask({ logout: { clientId: CLIENT_ID, subject, sid } }),
    async machineToken(audience) {
      const secret = [CLIENT_ID, CLIENT_SECRET].map((each) => encodeURIComponent(each)).join(":");
      const res = await fetch(`http://127.0.0.1:${port}/token`, {
        method: "POST",
        headers: { authorization: `Basic ${Buffer.from(secret).toString("base64")}` },
        body: new URLSearchParams({ grant_type: "client_credentials", resource: `urn:${audience}` }),
      });
      const { access_token, ...others } = (await res.json()) as { readonly access_token?: string };
      if (access_token === undefined) throw new Error(`no token: ${JSON.stringify(others)}`);
      return access_token;
    },
  };
}

/** Writes a file of providers, and the file of their secret next to it; returns its path. */
export function providersFile(folder: string, ...providers: readonly object[]): string {
  writeFileSync(join(folder, "client-secret"), `${CLIENT_SECRET}\n`);
  const file = join(folder, "providers.json");
  const common = { clientId: CLIENT_ID, clientSecretFile: "client-secret" };
  writeFileSync(file, JSON.stringify({ providers: providers.map((each) => ({ ...common, ...each })) }));
  return file;
}

/** A browser, as far as signing in needs one: it keeps cookies by origin, and is sent from place to place. */
export class Browser {
  readonly #cookies = new Map<string, Map<string, string>>();

  /** Returns the cookies for a server, as it sends them; and takes those of another browser. */
  cookiesOf(url: string): string {
    return [...this.#jar(url)].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  setCookie(url: string, name: string, value: string): void {
    this.#jar(url).set(name, value);
  }

  /** Sends a request and keeps the cookies of the answer; follows nothing. */
  async send(url: string, init: RequestInit = {}): Promise<Response> {
    const headers = { ...init.headers, cookie: this.cookiesOf(url) };
    const res = await fetch(inReach(url), { ...init, headers, redirect: "manual" });
    for (const each of res.headers.getSetCookie()) {
      const [pair = "", ...attributes] = each.split(/; ?/);
      const [name = "", value = ""] = [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)];
      const isGone = value === "" || attributes.some((attribute) => /^max-age=0$/i.test(attribute));
      if (isGone) this.#jar(url).delete(name);
      else this.#jar(url).set(name, value);
    }
    return res;
  }

  /** Presses the button of a provider on the sign-in page; returns where the page goes, or the problem. */
  async begin(server: Pick<ReachableServer, "url">, id: string, replace = false) {
    const origin = originOf(server);
    const res = await this.send(`${origin}/sign-in/begin/${id}`, {
      method: "POST",
      headers: { "content-type": "application/json", origin },
      body: JSON.stringify({ replace }),
    });
    return (await res.json()) as { readonly url?: string; readonly problem?: string };
  }

  /** Signs in at the provider, as a person; returns where the provider sends the browser. */
  async atProvider(url: string, person: string): Promise<string> {
    const { origin } = new URL(url);
    let place = `${url}&login_hint=${person}`;
    for (let step = 0; step < 10; step++) {
      const res = await this.send(place);
      const to = new URL(res.headers.get("location") ?? "", place);
      await res.arrayBuffer();
      if (to.origin !== origin) return to.href;
      place = to.href;
    }
    throw new Error("the provider sends the browser around in circles");
  }

  /** Signs in with a provider from the button to the end; returns where the browser is then. */
  async signIn(server: Pick<ReachableServer, "url">, id: string, person: string, replace = false) {
    const { url, problem } = await this.begin(server, id, replace);
    if (url === undefined) throw new Error(`nothing was begun: ${problem}`);
    return this.arrive(await this.atProvider(url, person));
  }

  /** Opens a place to which a provider sends the browser; returns where the server sends it from there. */
  async arrive(place: string): Promise<string> {
    return (await this.send(place)).headers.get("location") ?? "";
  }

  #jar(url: string): Map<string, string> {
    const { host } = new URL(inReach(url));
    const jar = this.#cookies.get(host) ?? new Map();
    this.#cookies.set(host, jar);
    return jar;
  }
}

/** Returns an address that this machine resolves. */
function inReach(url: string): string {
  return url.replace("//chartroom.localhost", "//127.0.0.1");
}
