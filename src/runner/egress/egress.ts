import { randomUUID } from "node:crypto";
import { type EventEmitter, once } from "node:events";
import { chmodSync, closeSync, openSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { EnvironmentInitializer } from "#gen/service/v1/environment_pb.js";
import { EgressHostSet as HostSet } from "#gen/service/v1/organization_pb.js";
import { type ResolveHost, systemResolve } from "../git/remote-address.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import {
  createCredentialProxy,
  type ProxiedSecret,
  trustedAuthorities,
  trustedByWork,
} from "./credential-proxy.ts";
import { createEgressProxy, type EgressProxyOptions } from "./egress-proxy.ts";
import {
  type EgressTarget,
  egressDecider,
  type PrivateNetworks,
  resolverForWork,
  targetOfUrl,
  withinRules,
} from "./egress-rules.ts";
import { describeRefusal, type EgressConnection } from "./forward-request.ts";
import { type MachineSettings, readMachineRegistries } from "./machine-registries.ts";
import type { NamedHosts } from "./named-hosts.ts";
import type { WorkNetwork } from "./work-network.ts";
import { DEFAULT_EGRESS, type EgressHosts, rulesOf, sourcesOf } from "./work-rules.ts";

export interface EgressOptions {
  /** The URL at which work reaches the service. */
  readonly serverUrl: string;
  /** The hosts that the operator has configured. */
  readonly named: NamedHosts;
  /** Private addresses that the operator allows work to reach. */
  readonly privateNetworks: PrivateNetworks;
  readonly machine: MachineSettings;
  readonly resolve?: ResolveHost;
  /** Certificates in PEM of authorities that verify hosts, in addition to those of Node and the machine. */
  readonly authorities?: readonly string[] | undefined;
}

/** A piece of work that connects to hosts. */
export interface NetworkedWork {
  /** The folder of its workspace. It exists, and only the runner can enter it. */
  readonly folder: string;
  /** The sources of its environment. */
  readonly initializer: EnvironmentInitializer | undefined;
  /** The organization's policy; the default one when absent. */
  readonly policy?: EgressHosts | undefined;
  /** True if it may only reach the hosts of its sources that the policy allows. */
  readonly sourcesOnly?: boolean;
  /** The secrets that are injected into its requests; none when absent. */
  readonly secrets?: readonly ProxiedSecret[];
  /** Masks secrets in a host name before it is shown; nothing is masked when absent. */
  readonly maskHost?: (host: string) => string;
  readonly onConnection?: (connection: EgressConnection) => void;
}

export interface OpenNetwork extends WorkNetwork {
  /** Returns a warning about the refused connections, for work whose output nobody reads; empty if there were none. */
  warnings(): readonly WorkFailure[];
  /** Closes all connections; resolves when each has been reported. */
  close(): Promise<void>;
}

/** Opens the network access of isolated work: one proxy for each piece of work. */
export class Egress {
  readonly #options: EgressOptions;
  readonly #service: EgressTarget | undefined;
  /** Read once: later changes to the machine's settings have no effect until the runner restarts. */
  #registries: ReturnType<typeof readMachineRegistries> | undefined;

  /** Read once, and only if secrets need them, since there are hundreds. */
  #trusted: ReturnType<typeof trustedAuthorities> | undefined;

  constructor(options: EgressOptions) {
    this.#options = options;
    this.#service = targetOfUrl(options.serverUrl);
  }

  #registriesOf(machine: MachineSettings): ReturnType<typeof readMachineRegistries> {
    this.#registries ??= readMachineRegistries(machine);
    return this.#registries;
  }

  #trustedAuthorities(): ReturnType<typeof trustedAuthorities> {
    this.#trusted ??= trustedAuthorities(this.#options.authorities);
    return this.#trusted;
  }

  async open(work: NetworkedWork): Promise<OpenNetwork> {
    const { named, privateNetworks, machine, resolve = systemResolve } = this.#options;
    const { policy = DEFAULT_EGRESS, initializer, folder, secrets = [] } = work;
    // Query the machine's clients only if the policy includes registries.
    const needsRegistries = policy.sets?.includes(HostSet.REGISTRIES);
    const rules = rulesOf(policy, {
      service: this.#service,
      initializer,
      registries: [...named.registries, ...(needsRegistries ? await this.#registriesOf(machine) : [])],
      models: named.models,
    });
    const refusals = new Refusals();
    const over = new AbortController();
    const decide = egressDecider(rules, privateNetworks, resolverForWork(resolve, over.signal));
    const hosts: EgressProxyOptions["hosts"] = new Set();
    const credentials =
      secrets.length === 0
        ? undefined
        : await createCredentialProxy(secrets, this.#trustedAuthorities(), Date.now());
    const server = createEgressProxy({
      credentials,
      decide: work.sourcesOnly ? withinRules(sourcesOf(initializer), decide) : decide,
      hosts,
      onConnection({ host, ...rest }) {
        const connection = { host: work.maskHost?.(host) ?? host, ...rest };
        refusals.add(connection);
        work.onConnection?.(connection);
      },
    });
    const sockets = new Set<Socket>();
    server.on("connection", (socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
    const id = randomUUID();
    const authoritiesFile = credentials && join(folder, `authorities-${id}.pem`);
    if (authoritiesFile) await writeFile(authoritiesFile, trustedByWork(credentials), { mode: 0o644 });
    const name = `egress-${id}.sock`;
    // The system limits a socket's path to 107 bytes. This path is short wherever the folder is.
    const descriptor = openSync(folder, "r");
    server.listen(`/proc/self/fd/${descriptor}/${name}`);
    await once(server, "listening").catch((error) => {
      closeSync(descriptor);
      throw error;
    });
    const socketFile = join(folder, name);
    // The work may run as a different user. Only the runner can enter the folder.
    chmodSync(socketFile, 0o666);
    return {
      socketFile,
      loopbackService: this.#service && isLoopback(this.#service.host) ? this.#service : undefined,
      authoritiesFile,
      ended: over.signal,
      takeRefusals: () => refusals.take(),
      warnings: () => refusals.warnings(),
      async close() {
        if (over.signal.aborted) return;
        over.abort();
        const closed = untilClosed(server);
        // Closing the server also removes the socket file.
        server.close(() => closeSync(descriptor));
        for (const socket of sockets) socket.destroy();
        await closed;
        for (const host of hosts) await untilClosed(host);
        if (authoritiesFile) await rm(authoritiesFile, { force: true });
      },
    };
  }
}

/** Resolves on the `close` event and ignores errors. */
function untilClosed(open: EventEmitter): Promise<void> {
  return new Promise((resolve) => open.once("close", () => resolve()));
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}

/** Number of refused hosts that the output of a piece of work names. */
const MAX_NAMED = 20;
/** Number of refused hosts that a warning names. */
const MAX_WARNED = 5;

/** Collects the refusals of a piece of work and names each one once. */
class Refusals {
  readonly #known = new Set<string>();
  #unnamed: string[] = [];

  add({ host, port, refusal }: EgressConnection): void {
    if (refusal === undefined || this.#known.size > MAX_NAMED) return;
    const line = describeRefusal({ host, port }, refusal);
    if (this.#known.has(line)) return;
    this.#known.add(line);
    this.#unnamed.push(this.#known.size > MAX_NAMED ? "more hosts are not reached" : line);
  }

  warnings(): readonly WorkFailure[] {
    const lines = [...this.#known].slice(0, MAX_WARNED);
    return lines.length === 0 ? [] : [new WorkFailure("egress_refused", lines.join("; "))];
  }

  take(): readonly string[] {
    const lines = this.#unnamed;
    this.#unnamed = [];
    return lines;
  }
}
