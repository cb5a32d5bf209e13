import type { EnvironmentInitializer } from "#gen/service/v1/environment_pb.js";
import { repositoryIdentity } from "./repository-identity.ts";

/** Returns the remotes and page addresses of an initializer. */
export function addressesOf(initializer: EnvironmentInitializer | undefined): string[] {
  return (initializer?.specs ?? []).flatMap(({ spec }) => {
    if (spec.case === "contextUrl") return [spec.value.url];
    if (spec.case !== "git") return [];
    return [spec.value.remoteUri, spec.value.upstreamRemoteUri].filter((address) => address !== "");
  });
}

/**
 * Returns whether a host, in lower case and with its port unless the transport implies it, is that
 * of any of the addresses.
 */
export function isHostOf(host: string, addresses: readonly string[]): boolean {
  return addresses.some((address) => repositoryIdentity(address)?.split("/")[0] === host);
}
