import { describe, expect, test } from "@jest/globals";
import { createStreamSlots } from "./stream-slots.ts";

const LIMITS = { perToken: 2, perOrganization: 3, perServer: 4 };
const caller = (tokenId: string, organizationId: string) => ({ tokenId, organizationId });
const slots = () => createStreamSlots(LIMITS);

/** Returns the metadata of the error; undefined when a slot was given. */
function errorOf(take: () => unknown): unknown {
  try {
    take();
    return undefined;
  } catch (error) {
    return (error as { metadata?: unknown }).metadata;
  }
}

describe("slots of streams", () => {
  test("are given to a token up to its limit", () => {
    const { take } = slots();
    for (let open = 0; open < 2; open++) take(caller("one", "home"));
    expect(errorOf(() => take(caller("one", "home")))).toEqual({ scope: "token", limit: "2" });
    expect(errorOf(() => take(caller("another", "home")))).toBeUndefined();
  });

  test("are given to an organization up to its limit, whatever its tokens", () => {
    const { take } = slots();
    for (const token of ["one", "two", "three"]) take(caller(token, "home"));
    expect(errorOf(() => take(caller("four", "home")))).toEqual({ scope: "organization", limit: "3" });
    expect(errorOf(() => take(caller("five", "away")))).toBeUndefined();
  });

  test("are given to all up to a limit", () => {
    const { take } = slots();
    for (const token of ["one", "two", "three", "four"]) take(caller(token, `home of ${token}`));
    expect(errorOf(() => take(caller("five", "home of five")))).toEqual({ scope: "server", limit: "4" });
  });

  test("are free again once released, each once", () => {
    const { take } = slots();
    const leave = take(caller("one", "home"));
    take(caller("one", "home"));
    leave();
    leave();
    expect(errorOf(() => take(caller("one", "home")))).toBeUndefined();
    expect(errorOf(() => take(caller("one", "home")))).toEqual({ scope: "token", limit: "2" });
  });

  test("are not counted for a rejected stream", () => {
    const { take } = slots();
    for (let open = 0; open < 2; open++) take(caller("one", "home"));
    for (let rejected = 0; rejected < 5; rejected++) errorOf(() => take(caller("one", "home")));
    expect(errorOf(() => take(caller("two", "home")))).toBeUndefined();
  });
});
