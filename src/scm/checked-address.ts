import { type LookupAddress, lookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { ScmFailure } from "./failure.ts";
import { isPublicAddress } from "./public-address.ts";
import type { ScmSettings } from "./settings.ts";

/**
 * Looks a host's name up and hands its addresses on only when every one may be
 * reached. A connection made with it goes to an address that was checked; a
 * second look-up, which could answer something else, does not take place.
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
 * The same check for a host that is written as an address, for which no look-up
 * takes place.
 *
 * @param hostname as URL says it; IPv6 without brackets
 * @throws ScmFailure refused
 */
export function checkWrittenAddress(hostname: string, host: string, settings: ScmSettings): void {
  if (isIP(hostname) !== 0 && !mayReach(hostname, settings)) throw notPublic(host);
}

/** Whether every address of a name may be reached: which of them a connection takes is not known before. */
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
