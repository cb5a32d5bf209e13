import { BlockList, isIP } from "node:net";

/**
 * Blocks that no request may go to: the entries of the IANA special-purpose registry (RFC 6890)
 * that are not globally reachable, and multicast. One public address is among them, because a cloud
 * serves its metadata there.
 */
const NON_PUBLIC_IPV4: readonly (readonly [block: string, prefixBits: number])[] = [
  ["0.0.0.0", 8], // this network
  ["10.0.0.0", 8], // private
  ["100.64.0.0", 10], // shared by a carrier's customers
  ["127.0.0.0", 8], // loopback
  ["168.63.129.16", 32], // metadata of one cloud, at an address that looks public
  ["169.254.0.0", 16], // link-local, and metadata of most clouds
  ["172.16.0.0", 12], // private
  ["192.0.0.0", 24], // protocol assignments
  ["192.0.2.0", 24], // documentation
  ["192.88.99.0", 24], // relays of 6to4, deprecated
  ["192.168.0.0", 16], // private
  ["198.18.0.0", 15], // benchmarks
  ["198.51.100.0", 24], // documentation
  ["203.0.113.0", 24], // documentation
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4], // reserved, and broadcast
];

/** Only 2000::/3 is assigned to the public; these blocks of it are not. */
const NON_PUBLIC_IPV6: readonly (readonly [block: string, prefixBits: number])[] = [
  ["2001::", 23], // protocol assignments, with Teredo
  ["2001:db8::", 32], // documentation
  ["3fff::", 20], // documentation
];

const nonPublicIpv4 = new BlockList();
const nonPublicIpv6 = new BlockList();
const publicIpv6 = new BlockList();
publicIpv6.addSubnet("2000::", 3, "ipv6");
// Traffic to these blocks ends at the embedded IPv4 address, which is checked instead: IPv4-mapped, NAT64, 6to4.
publicIpv6.addSubnet("::ffff:0:0", 96, "ipv6");
publicIpv6.addSubnet("64:ff9b::", 96, "ipv6");
for (const [block, bits] of NON_PUBLIC_IPV6) nonPublicIpv6.addSubnet(block, bits, "ipv6");
for (const [block, bits] of NON_PUBLIC_IPV4) {
  nonPublicIpv4.addSubnet(block, bits);
  nonPublicIpv6.addSubnet(`::ffff:${block}`, 96 + bits, "ipv6");
  nonPublicIpv6.addSubnet(`64:ff9b::${block}`, 96 + bits, "ipv6");
  nonPublicIpv6.addSubnet(`2002:${hexGroups(block)}::`, 16 + bits, "ipv6");
}

/** Returns an IPv4 address as the two groups that represent it in an IPv6 address. */
function hexGroups(ipv4: string): string {
  return (Buffer.from(ipv4.split(".").map(Number)).toString("hex").match(/.{4}/g) ?? []).join(":");
}

/**
 * Returns whether an address belongs to the public internet, so that a request on behalf of a
 * caller may go there. `ip` is an IPv4 address as four decimal numbers or an IPv6 address without
 * brackets; anything else (a name, a zone index, an octal or hexadecimal number) is not public.
 */
export function isPublicAddress(ip: string): boolean {
  if (ip.includes("%")) return false;
  const family = isIP(ip);
  if (family === 4) return !nonPublicIpv4.check(ip);
  return family === 6 && publicIpv6.check(ip, "ipv6") && !nonPublicIpv6.check(ip, "ipv6");
}
