/** An IPv4 address in the form of IPv6, as a socket that accepts both shows it (RFC 4291, section 2.5.5.2). */
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * Returns an address as texts and lists of addresses have it: one of IPv4 never in the form of IPv6, and
 * without the zone of a link.
 */
export function plainAddress(address: string): string {
  return MAPPED.exec(address)?.[1] ?? address.replace(/%.*$/, "");
}
