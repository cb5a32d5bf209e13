import { BlockList, isIP, SocketAddress } from "node:net";
import { plainAddress } from "../connection/plain-address.ts";

/** A range of addresses: all that share their first `prefix` bits with `address`. */
export interface AddressRange {
  readonly address: string;
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
}

/** Maximum number of proxies that are followed; addresses further away in the header are not read. */
export const MAX_PROXIES = 16;

/** Maximum length of an address as text, including IPv4-mapped IPv6 addresses and surrounding white space. */
const MAX_TEXT = 64;

/**
 * Returns the address of the client of a request.
 *
 * @param peer the address at the other end of the connection
 * @param forwarded the values of X-Forwarded-For, joined by commas in the order of their headers
 */
export type ClientAddress = (peer: string, forwarded: string | readonly string[] | undefined) => string;

/**
 * Creates the function that determines the client address of a request. Each proxy appends the address of its own
 * peer to X-Forwarded-For, so only the end of the list can be trusted. The list is read from the right while each
 * address is that of a trusted proxy. The first other address is the client. If the list ends first, or an entry is
 * not an address, the client is the last proxy that was found.
 *
 * @param trusted the addresses of proxies; the header of any other peer is not read
 */
export function createClientAddress(trusted: readonly AddressRange[]): ClientAddress {
  if (trusted.length === 0) return (peer) => peer;
  const isProxy = createProxyCheck(trusted);
  return (peer, forwarded) => {
    const list = forwarded === undefined ? "" : String(forwarded);
    let client = peer;
    let end = list.length;
    for (let hops = 0; hops < MAX_PROXIES && end > 0 && isProxy(client); hops++) {
      const start = list.lastIndexOf(",", end - 1) + 1;
      const address = end - start > MAX_TEXT ? undefined : addressIn(list.slice(start, end));
      if (address === undefined) break;
      client = address;
      end = start - 1;
    }
    return client;
  };
}

/** Creates the function that returns whether an address is that of a trusted proxy. */
export function createProxyCheck(trusted: readonly AddressRange[]): (address: string) => boolean {
  const proxies = new BlockList();
  for (const { address, prefix, family } of trusted) proxies.addSubnet(address, prefix, family);
  return (address) => {
    const version = isIP(address);
    return version !== 0 && proxies.check(address, version === 6 ? "ipv6" : "ipv4");
  };
}

/** Parses an address and returns its shortest form; undefined when the text is not an address. */
function addressIn(text: string): string | undefined {
  const address = text.trim();
  const version = isIP(address);
  if (version !== 6) return version === 4 ? address : undefined;
  // A zone id has a meaning only on the machine that wrote it.
  if (address.includes("%")) return undefined;
  return plainAddress(new SocketAddress({ address, family: "ipv6" }).address);
}
