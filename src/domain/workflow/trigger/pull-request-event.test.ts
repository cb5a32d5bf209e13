import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../../test/harness/seed.ts";
import {
  approvingReview,
  GITEA_PULL_REQUEST,
  GITHUB_PULL_REQUEST,
  GITHUB_REVIEW,
  GITLAB_MERGE_REQUEST,
  openedGiteaPullRequest,
  openedMergeRequest,
  openedPullRequest,
  type Payload,
  updatedMergeRequest,
} from "../../../../test/harness/webhook-payload.ts";
import { parsePullRequestDelivery } from "./pull-request-event.ts";

type Headers = Readonly<Record<string, string>>;

function reason(headers: Headers, value: unknown): string {
  const reading = parsePullRequestDelivery(headers, Buffer.from(JSON.stringify(value)));
  return reading.delivery ? "" : reading.reason;
}

describe("what is no event of a pull request", () => {
  test.each([
    [{}, "none of the headers X-GitHub-Event, X-Gitlab-Event, X-Gitea-Event and X-Forgejo-Event"],
    [{ "x-github-event": "ping" }, "a ping: the hook is set up"],
    [{ "x-github-event": "push" }, 'the event "push" is not about a pull request'],
    [{ "x-gitlab-event": "Push Hook" }, 'the event "Push Hook" is not about a pull request'],
    [{ "x-gitea-event": "push", "x-github-event": "push" }, 'the event "push" is not about a pull request'],
    [{ "x-gitea-event": "pull_request_rejected" }, 'the event "pull_request_rejected" is not about'],
    [{ "x-gitea-event": "", "x-gitea-event-type": "status" }, 'the event "status" is not about'],
    [{ "x-forgejo-event": "" }, 'the event "" is not about'],
    [{ "x-github-event": "" }, 'the event "" is not about'],
    [
      { "x-github-event": `\u0000"${"x".repeat(100)}` },
      `the event "\\u0000\\"${"x".repeat(62)}" is not about`,
    ],
  ] as [Headers, string][])("with the headers %j says so", (headers, expected) => {
    expect(reason(headers, openedPullRequest())).toContain(expected);
  });

  test("as a form says how to send it", () => {
    expect(parsePullRequestDelivery(GITHUB_PULL_REQUEST, Buffer.from("payload=%7B%7D"))).toEqual({
      reason: "the body is not JSON: send JSON, or no body at all",
      isMalformed: true,
    });
  });

  test.each([[null], [[]], ["text"], [7], [true], [{}], [{ action: 1 }], [{ object_attributes: "open" }]])(
    "as %j says what is missing",
    (value) => {
      for (const headers of [GITHUB_PULL_REQUEST, GITHUB_REVIEW, GITLAB_MERGE_REQUEST, GITEA_PULL_REQUEST]) {
        expect(reason(headers, value)).toMatch(/ must be /);
      }
    },
  );
});

/** Values for a place of GitHub's payload, accepted and rejected ones. */
const FORMS: readonly (readonly [place: string, taken: readonly unknown[], refused: readonly unknown[]])[] = [
  ["pull_request.number", [1, Number.MAX_SAFE_INTEGER], [0, -1, 1.5, "41", null, 2 ** 53, [41]]],
  [
    "pull_request.head.ref",
    ["a", "ä".repeat(254), "🚢".repeat(255)],
    ["", "a".repeat(256), "a\nb", "a\0", "\ud83d", 7, null, {}],
  ],
  [
    "pull_request.head.sha",
    ["0".repeat(40), "f".repeat(64)],
    ["0".repeat(39), "0".repeat(41), "0".repeat(63), "0".repeat(65), "F".repeat(40), "main", null],
  ],
  [
    "pull_request.html_url",
    ["http://git.example.org/pull/41", `https://git.example.org/${"p".repeat(2_024)}`],
    [
      `https://git.example.org/${"p".repeat(2_025)}`,
      "javascript:alert(1)",
      "git.example.org/pull/41",
      "https:git.example.org/pull/41",
      "https:///git.example.org/pull/41",
      "https://",
      " https://git.example.org/pull/41",
      "https://git.example.org/pull/4 1",
      "https://git.example.org\\@evil.example/pull/41",
      "https://git.example.org:99999/pull/41",
      null,
    ],
  ],
  [
    "repository.clone_url",
    ["http://localhost:3000/o/r.git"],
    [
      "file:///srv/git/r.git",
      "git@git.example.org:o/r.git",
      "ssh://git@git.example.org/o/r.git",
      "--upload-pack=id",
      "ext::sh -c id",
      "https://nell:word@git.example.org/o/r.git",
      "https://token@git.example.org/o/r.git",
      "",
      null,
    ],
  ],
  [
    "repository.full_name",
    ["o/r", `${"o".repeat(255)}/${"r".repeat(255)}`, "o/p/r"],
    ["repository", "/r", "o/", `${"o".repeat(256)}/r`, `o/${"r".repeat(256)}`, "o/r\n", null, 7],
  ],
  ["repository.ssh_url", ["u".repeat(2_048), null], ["u".repeat(2_049), 7, "a\nb", ""]],
  ["pull_request.user.login", ["l".repeat(255)], ["", "l".repeat(256), 7, null]],
  ["pull_request.draft", [true, null], ["true", 1, {}]],
  ["pull_request.state", ["closed"], ["merged", "", null, 1]],
  ["pull_request.title", ["", "\0", "t".repeat(501)], [null, 7, ["a"]]],
];

describe.each(FORMS)("at %s", (place, taken, refused) => {
  test.each(taken.map((value) => [value]))("%j is taken", (value) => {
    expect(reason(GITHUB_PULL_REQUEST, openedPullRequest({ [place]: value }))).toBe("");
  });

  test.each(refused.map((value) => [value]))("%j is refused", (value) => {
    const refusal = reason(GITHUB_PULL_REQUEST, openedPullRequest({ [place]: value }));
    expect(refusal).toMatch(/ must (be|have) /);
    expect(refusal).not.toMatch(/word|token/);
  });
});

test.each([253, 254])("a host name of %i characters", (length) => {
  const host = `${"h.".repeat(length / 2)}h`.slice(-length).replace(/^\./, "h");
  const refusal = reason(
    GITHUB_PULL_REQUEST,
    openedPullRequest({ "repository.clone_url": `https://${host}/o/r` }),
  );
  expect([host.length, refusal]).toEqual([
    length,
    length === 253 ? "" : "the host name of the repository has more than 253 characters",
  ]);
});

test("no change of one value in a payload makes the reading fail", () => {
  const originals = [
    [GITHUB_PULL_REQUEST, openedPullRequest()],
    [GITHUB_REVIEW, approvingReview()],
    [GITLAB_MERGE_REQUEST, openedMergeRequest()],
    [GITLAB_MERGE_REQUEST, updatedMergeRequest()],
    [GITEA_PULL_REQUEST, openedGiteaPullRequest()],
  ] as const;
  fc.assert(
    fc.property(
      fc.constantFrom(...originals),
      fc.nat(),
      fc.jsonValue(),
      ([headers, original], seed, value) => {
        const changed = structuredClone(original);
        const all = placesOf(changed);
        const [holder, name] = all[seed % all.length] ?? [changed, "action"];
        holder[name] = value;
        const reading = parsePullRequestDelivery(headers, Buffer.from(JSON.stringify(changed)));
        expect(
          reading.delivery?.events.length ?? (reading as { reason: string }).reason.length,
        ).toBeGreaterThan(0);
      },
    ),
    { ...replay, numRuns: 2_000 },
  );
});

/** Returns every member of every object and array in a value, with its holder. */
function placesOf(value: Payload): [holder: Payload, name: string][] {
  return Object.entries(value).flatMap(([name, member]) => [
    [value, name],
    ...(typeof member === "object" && member !== null ? placesOf(member as Payload) : []),
  ]);
}
