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
 * Returns whether any of the addresses is at a host. The host is in lower case, with its port unless
 * the transport implies it.
 */
export function isHostOf(host: string, addresses: readonly string[]): boolean {
  return addresses.some((address) => repositoryIdentity(address)?.split("/")[0] === host);
}
