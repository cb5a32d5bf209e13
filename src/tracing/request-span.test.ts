import { expect, test } from "@jest/globals";
import type { BegunRequest } from "../domain/trace/request-traces.ts";
import { beginRequestSpan } from "./request-span.ts";
import type { Span } from "./span.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";
const ID = "01936c1e-7c1a-7000-8abc-0123456789ab";

function begin(more: Partial<BegunRequest>) {
  const sent: Span[] = [];
  let at = 1_000;
  const request = beginRequestSpan(
    {
      method: "GET",
      url: new URL("http://a:b@[::1]/ids/7?key=secret"),
      traceparent: `00-${TRACE}-${PARENT}-01`,
      ...more,
    },
    { now: () => (at += 5), newId: () => ID },
    (span) => sent.push(span),
  );
  return { request, sent };
}

test("a request's span has its method, its server and its answer, and nothing of its path", () => {
  const { request, sent } = begin({});
  expect(request?.traceparent).toBe(`00-${TRACE}-8abc0123456789ab-01`);
  request?.end({ status: 304 });
  expect(sent).toEqual([
    {
      ...{ traceId: TRACE, spanId: "8abc0123456789ab", parentSpanId: PARENT, name: "GET", side: "client" },
      ...{ start: 1_005, end: 1_010, hasFailed: false },
      attributes: {
        "http.request.method": "GET",
        "server.address": "::1",
        "server.port": 80,
        "http.response.status_code": 304,
      },
    },
  ]);
});

test.each([
  [{ status: 399 }, false, undefined],
  [{ status: 400 }, true, "400"],
  [{ status: 401 }, true, "401"],
  [{ status: 401, mayBeRefused: true }, false, undefined],
  [{ status: 499, mayBeRefused: true }, false, undefined],
  [{ status: 500, mayBeRefused: true }, true, "500"],
  [{ errorType: "ECONNREFUSED" }, true, "ECONNREFUSED"],
])("of an end %j it has failed: %s", (outcome, hasFailed, errorType) => {
  const { request, sent } = begin({ url: new URL("https://git.example.org/") });
  request?.end(outcome);
  expect(sent[0]).toMatchObject({ hasFailed });
  expect(sent[0]?.attributes["error.type"]).toBe(errorType);
  expect(sent[0]?.attributes["server.port"]).toBe(443);
});

test.each([undefined, `00-${TRACE}-${PARENT}-00`, "malformed"])(
  "a request with the traceparent %s has none",
  (traceparent) => {
    expect(begin({ traceparent }).request).toBeUndefined();
  },
);
