import { type LookupAddress, lookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { ScmFailure } from "./failure.ts";
import { isPublicAddress } from "./public-address.ts";
import type { ScmSettings } from "./settings.ts";

/**
 * Creates a look-up of a host's name that returns its addresses only when every
 * one may be reached. A connection with it goes to a checked address; a second
 * look-up, which could return another one, does not take place.
 */
export function checkedLookup(host: string, settings: ScmSettings): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error || first === undefined) {
        callback(error ?? new ScmFailure("unavailable", host, "has no address"), "");
      } else if (!mayReachAll(addresses, settings)) {
        callback(notPublic(host), "");
      } else if (options.all) {
        callback(null, addresses);
      } else {
        callback(null, first.address, first.family);
      }
    });
  };
}

/**
 * Checks a host that is written as an address, for which no look-up takes place.
 *
 * @param hostname as URL returns it; IPv6 without brackets
 * @throws ScmFailure refused
 */
export function checkWrittenAddress(hostname: string, host: string, settings: ScmSettings): void {
  if (isIP(hostname) !== 0 && !mayReach(hostname, settings)) throw notPublic(host);
}

/** Returns whether every address of a name may be reached: a connection may take any of them. */
export function mayReachAll(addresses: readonly LookupAddress[], settings: ScmSettings): boolean {
  return addresses.every(({ address }) => mayReach(address, settings));
}

function mayReach(address: string, { allowPrivateAddresses }: ScmSettings): boolean {
  return allowPrivateAddresses || isPublicAddress(address);
}

function notPublic(host: string): ScmFailure {
  return new ScmFailure(
    "refused",
    host,
    "is at an address that is not public: the operator can allow private addresses",
  );
}
