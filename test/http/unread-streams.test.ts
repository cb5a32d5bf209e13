import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type Echo, startEcho, stopEchoes } from "./echo-process.ts";
import { answerOf, connectHttp2, open, post } from "./http2-client.ts";

/** More than one connection may have open at once; see LISTENER_LIMITS. */
const REQUESTS = 300;

let echo: Echo;
beforeAll(async () => {
  echo = await startEcho();
});
afterAll(stopEchoes);

test.each([4, 20_000])(
  "a connection of HTTP/2 is not used up by bodies of %d bytes that came whole and that nobody read",
  async (bytes) => {
    const session = await connectHttp2(echo.port);
    for (let request = 0; request < REQUESTS; request++) {
      const stream = open(session, "/refuse");
      stream.end(Buffer.alloc(bytes));
      expect(await answerOf(stream)).toMatchObject({ status: 401, resetCode: 0 });
    }
    expect(await post(session, "/active")).toMatchObject({ status: 200, body: '{"active":1}' });
    session.close();
  },
);

test.each([20_000, 120_000])(
  "a stream is not held open by a body of %d bytes that came whole and was read in part",
  async (bytes) => {
    const session = await connectHttp2(echo.port);
    for (const path of ["/enough", "/trailers"]) {
      const stream = open(session, path);
      stream.end(Buffer.alloc(bytes));
      expect((await answerOf(stream)).resetCode).toBe(0);
    }
    expect(await post(session, "/active")).toMatchObject({ status: 200, body: '{"active":1}' });
    session.close();
  },
);
