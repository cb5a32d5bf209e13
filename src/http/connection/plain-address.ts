/** An IPv4-mapped IPv6 address, as a dual-stack socket shows it (RFC 4291, section 2.5.5.2). */
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * Returns an address in its usual form: an IPv4-mapped IPv6 address as IPv4, and an IPv6 address without its
 * zone id.
 */
export function plainAddress(address: string): string {
  return MAPPED.exec(address)?.[1] ?? address.replace(/%.*$/, "");
}
