import type { BodyGuard } from "../body/body-guard.ts";
import type { Connection, Connections } from "./connections.ts";
import type { HttpRequest, HttpResponse } from "./listener.ts";
import type { ListenerLimits } from "./listener-limits.ts";

/** The parts that the servers of both protocols share. */
export interface ServerContext {
  readonly limits: ListenerLimits;
  readonly guard: BodyGuard;
  readonly connections: Connections;
  readonly isDraining: () => boolean;
  readonly handle: (req: HttpRequest, res: HttpResponse, peer: string) => void;
}

/** A server of one protocol that gets its connections from the listener. */
export interface ProtocolServer {
  adopt(connection: Connection): void;
}
