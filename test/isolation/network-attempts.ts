import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { networkInterfaces } from "node:os";

export const python = (body: string) => `exec /usr/bin/python3 -c '
import os, socket, sys
socket.setdefaulttimeout(60)
${body}'`;
export const hasIpv6 = Object.values(networkInterfaces()).some((each) =>
  each?.some(({ address }) => address === "::1"),
);
/** What each of the attempts below prints when it has reached what it wants. */
export const REACHED = "got-through";

export const NETWORK_ATTEMPTS: readonly {
  readonly name: string;
  readonly script: string;
  readonly needs?: boolean;
}[] = [
  {
    name: "a service on the machine's loopback by its address",
    script: python(
      'print(socket.create_connection(("127.0.0.1", int(os.environ["TCP"]))).recv(99).decode())',
    ),
  },
  {
    name: "the same by IPv6",
    script: python('print(socket.create_connection(("::1", int(os.environ["TCP6"]))).recv(99).decode())'),
    needs: hasIpv6,
  },
  {
    name: "a name server, and anything else by UDP",
    script: python(
      's = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("127.0.0.1", int(os.environ["UDP"]))); s.send(b"?"); print(s.recv(99).decode())',
    ),
  },
  {
    name: "an address of the machine",
    script: python(
      'print(socket.create_connection((os.environ["ADDRESS"], int(os.environ["ALL"]))).recv(99).decode())',
    ),
  },
  {
    name: "the interfaces of the machine",
    script: '[ "$(grep -c : /proc/net/dev)" -gt 1 ] && echo got-through',
  },
];

/** Listeners of the machine that attempts are after. */
export interface NetworkWorld {
  /** The variables of attempts. */
  readonly variables: Readonly<Record<string, string>>;
  close(): void;
}

/** Opens listeners on the machine. */
export async function openNetworkWorld(): Promise<NetworkWorld> {
  const opened: { close(): unknown }[] = [];
  const listen = async (host: string) => {
    const server = createServer((socket) => socket.on("error", () => undefined).end(REACHED));
    opened.push(server);
    return String(await listening(server, host));
  };
  const udp = createSocket("udp4", (_, { port, address }) => udp.send(REACHED, port, address)).bind(
    0,
    "127.0.0.1",
  );
  opened.push(udp);
  await once(udp, "listening");
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return {
    variables: {
      TCP: await listen("127.0.0.1"),
      TCP6: hasIpv6 ? await listen("::1") : "",
      ALL: await listen("0.0.0.0"),
      UDP: String(udp.address().port),
      ADDRESS:
        addresses.find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? "127.0.0.1",
    },
    close() {
      for (const each of opened) each.close();
    },
  };
}

/** Has a server listen at a port that is free; its number. */
export async function listening(
  server: Server | ReturnType<typeof createServer>,
  host: string,
): Promise<number> {
  server.listen(0, host);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
