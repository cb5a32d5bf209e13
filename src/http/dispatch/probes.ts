import type { Readiness } from "../../rpc/health.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";

/** The state that probes tell. */
export interface Probes {
  /** While it has a problem, /readyz responds with 503 and all of them. */
  readonly readiness: Pick<Readiness, "problems">;
  /** The release of the server, such as `0.1.0`. */
  readonly version: string;
}

/**
 * Answers probes, none of which needs a token: /healthz says that the process lives, /readyz that it
 * accepts requests, or all that keeps it from that, and /version what it is.
 *
 * @returns whether the request was a probe
 */
export function handleProbe(req: HttpRequest, res: HttpResponse, { readiness, version }: Probes): boolean {
  switch (req.url) {
    case "/healthz":
      return respond(res, 200, { status: "ok" });
    case "/readyz": {
      const problems = readiness.problems();
      const [first] = problems;
      if (!first) return respond(res, 200, { status: "ok" });
      return respond(res, 503, { status: "unavailable", reason: first.reason, problems });
    }
    case "/version":
      if (req.method !== "GET" && req.method !== "HEAD") return false;
      return respond(res, 200, { name: "chartroom", version });
    default:
      return false;
  }
}

function respond(res: HttpResponse, status: number, body: object): true {
  res.statusCode = status;
  res.setHeader("content-type", "application/json");
  res.setHeader("cache-control", "no-store");
  res.end(JSON.stringify(body));
  return true;
}
