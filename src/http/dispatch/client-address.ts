import { BlockList, isIP, SocketAddress } from "node:net";
import { plainAddress } from "../connection/plain-address.ts";

/** A range of addresses: all whose first `prefix` bits are those of `address`. */
export interface AddressRange {
  readonly address: string;
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
}

/** Maximum number of proxies that a request may have passed; the address of one further away is never looked at. */
export const MAX_PROXIES = 16;

/** The longest text of an address, IPv4 in the form of IPv6 among them, and the white space around it. */
const MAX_TEXT = 64;

/**
 * Returns the address of the client of a request.
 *
 * @param peer the address at the other end of the connection
 * @param forwarded the values of X-Forwarded-For, joined by commas in the order of their headers
 */
export type ClientAddress = (peer: string, forwarded: string | readonly string[] | undefined) => string;

/**
 * Creates the function that tells who the client of a request is. Each proxy appends the address that it was
 * called from to X-Forwarded-For, so that only the end of the list is true: it is followed from the right for as
 * long as each address is that of a trusted proxy. The first other address is the client. Where the list ends or
 * holds no address, the client is the last proxy that was found.
 *
 * @param trusted the addresses of proxies; of anybody else the header is not read
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

/** Creates the function that tells whether an address is that of a trusted proxy. */
export function createProxyCheck(trusted: readonly AddressRange[]): (address: string) => boolean {
  const proxies = new BlockList();
  for (const { address, prefix, family } of trusted) proxies.addSubnet(address, prefix, family);
  return (address) => {
    const version = isIP(address);
    return version !== 0 && proxies.check(address, version === 6 ? "ipv6" : "ipv4");
  };
}

/** Returns the address that a text is, in its shortest form; undefined when it is none. */
function addressIn(text: string): string | undefined {
  const address = text.trim();
  const version = isIP(address);
  if (version !== 6) return version === 4 ? address : undefined;
  // A zone belongs to the machine that wrote it.
  if (address.includes("%")) return undefined;
  return plainAddress(new SocketAddress({ address, family: "ipv6" }).address);
}
