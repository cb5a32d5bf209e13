import { startNginx } from "./proxies.ts";
import { describeProxy } from "./suite.ts";

// Over HTTP/2 it sends the headers of an answer with the first bytes of its body.
describeProxy("nginx", startNginx, [
  "Connect in JSON over HTTP/1.1",
  "Connect in binary over HTTP/1.1",
  "gRPC-Web over HTTP/1.1",
]);
