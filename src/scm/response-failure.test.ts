import { describe, expect, test } from "@jest/globals";
import { failureOfResponse } from "./response-failure.ts";

const NOW = Date.parse("2026-11-21T12:00:00Z");
const IN_SECONDS = (seconds: number) => String(NOW / 1_000 + seconds);

const failure = (status: number, headers: Record<string, string> = {}, body: unknown = {}) =>
  failureOfResponse("git.example.org", { status, headers, text: JSON.stringify(body) }, ["s3cret"], NOW);

describe("the kind of a failure", () => {
  test.each([
    [400, "validation", false],
    [401, "unauthorized", false],
    [403, "forbidden", false],
    [404, "not_found", false],
    [408, "unavailable", true],
    [409, "validation", false],
    [410, "not_found", false],
    [422, "validation", false],
    [429, "rate_limited", true],
    [500, "unavailable", true],
    [502, "unavailable", true],
    [503, "unavailable", true],
    [599, "unavailable", true],
    [100, "unreadable", false],
    [304, "unreadable", false],
    [399, "unreadable", false],
  ])("of status %i is %s", (status, kind, retriable) => {
    const { message, ...rest } = failure(status, {}, { message: "why" });
    expect(rest).toMatchObject({ kind, host: "git.example.org" });
    expect(failure(status).retriable).toBe(retriable);
    expect(message).toBe(`git.example.org answered ${status}: why`);
  });

  test.each([
    ["names a wait", { "retry-after": "7" }, {}],
    ["has nothing left of its window", { "x-ratelimit-remaining": "0" }, {}],
    ["says so", {}, { message: "You have exceeded a secondary rate limit." }],
  ])("of status 403 is rate_limited when the answer %s", (_, headers, body) => {
    expect(failure(403, headers as Record<string, string>, body).kind).toBe("rate_limited");
  });

  test("of status 403 stays forbidden while something is left of the window", () => {
    expect(failure(403, { "x-ratelimit-remaining": "1" }).kind).toBe("forbidden");
  });
});

describe("the wait before the next try", () => {
  test.each([
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "7" }, 7_000],
    [{ "retry-after": "3600" }, 3_600_000],
    [{ "retry-after": "3601" }, 3_600_000],
    [{ "retry-after": "Sat, 21 Nov 2026 12:00:30 GMT" }, 30_000],
    [{ "retry-after": "Sat, 21 Nov 2026 11:00:00 GMT" }, 0],
    [{ "retry-after": "soon" }, 60_000],
    [{ "retry-after": "-1" }, 0],
    [{}, 60_000],
    [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": IN_SECONDS(90) }, 90_000],
    [{ "ratelimit-remaining": "0", "ratelimit-reset": IN_SECONDS(90) }, 90_000],
    // Some name fractions of seconds, of which a time in rows has whole milliseconds.
    [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": IN_SECONDS(90.0004) }, 90_001],
    [{ "x-ratelimit-remaining": "12", "x-ratelimit-reset": IN_SECONDS(90) }, 60_000],
    [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": IN_SECONDS(90_000) }, 3_600_000],
    [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": "later" }, 60_000],
    [{ "x-ratelimit-remaining": "0" }, 60_000],
    [{ "retry-after": "7", "x-ratelimit-remaining": "0", "x-ratelimit-reset": IN_SECONDS(90) }, 7_000],
  ])("that status 429 with %j asks for is %i ms", (headers, waitMs) => {
    expect(failure(429, headers as Record<string, string>).retryAfterMs).toBe(waitMs);
  });

  test("is given for what is unavailable only when the host names it", () => {
    expect(failure(503, { "retry-after": "7" }).retryAfterMs).toBe(7_000);
    expect(failure(503).retryAfterMs).toBeUndefined();
    expect(failure(422, { "retry-after": "7" }).retryAfterMs).toBeUndefined();
  });
});

describe("the host's own words", () => {
  const words = (body: unknown) => failure(422, {}, body).message.replace("git.example.org answered 422", "");

  test.each([
    [{ message: "Not Found", documentation_url: "https://docs.example.org" }, ": Not Found"],
    [
      {
        message: "Validation Failed",
        errors: [
          { resource: "PullRequest", code: "custom", message: "No commits between main and topic" },
          { resource: "PullRequest", field: "head", code: "invalid" },
          "plain words",
        ],
      },
      ": Validation Failed: No commits between main and topic, " +
        "resource PullRequest, field head, code invalid, plain words",
    ],
    [
      { message: ["Another open merge request already exists"] },
      ": Another open merge request already exists",
    ],
    [{ message: { source_branch: ["does not exist", "is odd"] } }, ": source_branch does not exist, is odd"],
    [
      { error: "invalid_token", error_description: "Token is expired." },
      ": invalid_token: Token is expired.",
    ],
    [{ message: "two\nlines\u0000\u2028 and\t\u202eone" }, ": two lines and one"],
    [{ message: 7, error: null }, ""],
    [[], ""],
    [null, ""],
    ["text", ""],
  ])("in %j", (body, expected) => {
    expect(words(body)).toBe(expected);
  });

  test("are cut to 500 characters", () => {
    expect(words({ message: "x".repeat(500) })).toBe(`: ${"x".repeat(500)}`);
    expect(words({ message: "x".repeat(501) })).toBe(`: ${"x".repeat(500)}`);
    expect(words({ message: "🐧".repeat(501) })).toBe(`: ${"🐧".repeat(500)}`);
  });

  test("hold no secret, in part neither", () => {
    expect(words({ message: "Bearer s3cret and again s3cret" })).toBe(": Bearer *** and again ***");
    expect(words({ message: `${"x".repeat(497)}s3cret` })).toBe(`: ${"x".repeat(497)}***`);
    const odd = failureOfResponse(
      "h",
      { status: 400, headers: {}, text: '{"message":"?t=a%2Fb"}' },
      ["a/b"],
      NOW,
    );
    expect(odd.message).toBe("h answered 400: ?t=***");
  });

  test("are left out when the answer is no JSON", () => {
    const text = "<h1>Bad gateway s3cret</h1>";
    const { message } = failureOfResponse("h", { status: 502, headers: {}, text }, ["s3cret"], NOW);
    expect(message).toBe("h answered 502");
  });

  test("that are nested without end are read in time", () => {
    const text = `{"message":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    expect(failureOfResponse("h", { status: 400, headers: {}, text }, [], NOW).message).toBe(
      "h answered 400",
    );
  });
});
