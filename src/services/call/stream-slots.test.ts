import { describe, expect, test } from "@jest/globals";
import { createStreamPlaces } from "./stream-slots.ts";

const LIMITS = { perToken: 2, perOrganization: 3, inAll: 4 };
const caller = (tokenId: string, organizationId: string) => ({ tokenId, organizationId });
const places = () => createStreamPlaces(LIMITS);

/** The metadata of the refusal; undefined when a place was given. */
function refusal(take: () => unknown): unknown {
  try {
    take();
    return undefined;
  } catch (error) {
    return (error as { metadata?: unknown }).metadata;
  }
}

describe("places of streams", () => {
  test("are given to a token up to its limit", () => {
    const { take } = places();
    for (let open = 0; open < 2; open++) take(caller("one", "home"));
    expect(refusal(() => take(caller("one", "home")))).toEqual({ scope: "token", limit: "2" });
    expect(refusal(() => take(caller("another", "home")))).toBeUndefined();
  });

  test("are given to an organization up to its limit, whatever its tokens", () => {
    const { take } = places();
    for (const token of ["one", "two", "three"]) take(caller(token, "home"));
    expect(refusal(() => take(caller("four", "home")))).toEqual({ scope: "organization", limit: "3" });
    expect(refusal(() => take(caller("five", "away")))).toBeUndefined();
  });

  test("are given to all up to a limit", () => {
    const { take } = places();
    for (const token of ["one", "two", "three", "four"]) take(caller(token, `home of ${token}`));
    expect(refusal(() => take(caller("five", "home of five")))).toEqual({ scope: "server", limit: "4" });
  });

  test("are free again once given up, each once", () => {
    const { take } = places();
    const leave = take(caller("one", "home"));
    take(caller("one", "home"));
    leave();
    leave();
    expect(refusal(() => take(caller("one", "home")))).toBeUndefined();
    expect(refusal(() => take(caller("one", "home")))).toEqual({ scope: "token", limit: "2" });
  });

  test("are not counted for a refused stream", () => {
    const { take } = places();
    for (let open = 0; open < 2; open++) take(caller("one", "home"));
    for (let refused = 0; refused < 5; refused++) refusal(() => take(caller("one", "home")));
    expect(refusal(() => take(caller("two", "home")))).toBeUndefined();
  });
});
