import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import {
  EventFormat,
  EventSubscriptionSchema,
  EventSubscriptionState as State,
} from "#gen/service/v1/event_subscription_pb.js";
import {
  CreateEventSubscriptionRequestSchema,
  UpdateEventSubscriptionRequestSchema,
} from "#gen/service/v1/event_subscription_service_pb.js";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  isAllowedHost,
  newSubscription,
  pausedByServer,
  requireActive,
  requireRoomForSubscription,
  requireTarget,
  rotatedSubscription,
  updatedSubscription,
} from "./event-subscription.ts";

test("the operator allows a host with its port, and that of https without or with it", () => {
  const hosts = new Set(["a.local", "b.local:443", "c.local:8080"]);
  const isAllowed = (url: string) => isAllowedHost(new URL(url), hosts);
  for (const url of [
    ...["https://a.local/x", "http://a.local/x", "https://a.local:443/x"],
    ...["https://b.local/x", "https://b.local:443/x", "http://b.local:443/x", "http://c.local:8080/x"],
  ])
    expect([url, isAllowed(url)]).toEqual([url, true]);
  for (const url of ["https://a.local:8080/", "http://b.local/", "https://b.local:8443/", "https://c.local/"])
    expect([url, isAllowed(url)]).toEqual([url, false]);
});

const allowed = new Set(["hooks.local:8080"]);
const context = { id: "it", creator: create(SubjectSchema, { id: "me" }), now: 1_000 };
const made = newSubscription(
  create(CreateEventSubscriptionRequestSchema, {
    name: "Chat",
    url: "https://hooks.example.org/services/T0/secret?token=1",
    eventKinds: ["approval.asked"],
  }),
  context,
  allowed,
);
const update = (more: object, before = made) =>
  updatedSubscription(before, create(UpdateEventSubscriptionRequestSchema, more), 2_000, allowed);

describe("a subscription", () => {
  test("shows the origin of its address alone", () => {
    expect(made).toMatchObject({
      target: "https://hooks.example.org",
      format: EventFormat.STANDARD,
      state: State.ACTIVE,
    });
    expect(
      JSON.stringify(made, (_, value) => (typeof value === "bigint" ? String(value) : value)),
    ).not.toMatch("secret");
  });

  test("keeps what an update leaves out", () => {
    const after = update({ name: "Talk" });
    expect(after).toMatchObject({ name: "Talk", target: made.target, eventKinds: ["approval.asked"] });
    expect(update({ eventKinds: ["*"] }).eventKinds).toEqual(["*"]);
    expect(update({ format: EventFormat.CHAT_TEXT }).format).toBe(EventFormat.CHAT_TEXT);
    expect(update({ url: "https://else.example.org" }).target).toBe("https://else.example.org");
  });

  test("is paused and resumed, no matter who paused it", () => {
    const paused = update({ paused: true });
    expect(paused.state).toBe(State.PAUSED);
    expect(() => requireActive(paused)).toThrow("paused");
    const failed = pausedByServer(made, 3_000);
    expect(update({ paused: true }, failed).state).toBe(State.PAUSED_BY_SERVER);
    expect(update({ paused: false }, failed).state).toBe(State.ACTIVE);
    expect(update({ name: "Talk" }, failed).state).toBe(State.PAUSED_BY_SERVER);
  });

  test("is signed with a replaced secret for a day", () => {
    const { subscription, until } = rotatedSubscription(made, 5_000);
    expect(until).toBe(5_000 + 86_400_000);
    expect(subscription.formerSecretUntil && timestampMs(subscription.formerSecretUntil)).toBe(until);
  });

  test("has room next to 19 others", () => {
    expect(() => requireRoomForSubscription(19)).not.toThrow();
    expect(() => requireRoomForSubscription(20)).toThrow("20 event subscriptions");
  });
});

describe("the address of a subscription", () => {
  test.each([
    "https://hooks.example.org",
    "https://hooks.example.org:8443/a?b=c",
    "http://hooks.local:8080/a",
    "https://127.0.0.1/a",
  ])("%s is taken: where it leads is looked at when it is used", (url) => {
    expect(requireTarget(url, allowed)).toBe(new URL(url).origin);
  });

  test.each([
    "canary.example.org",
    "ftp://canary.example.org",
    "http://canary.example.org",
    "http://hooks.local/canary",
    "https://canary@hooks.example.org",
    "https://user:canary@hooks.example.org",
    "https://hooks.example.org/#canary",
    "https://hooks.example.org/canary#",
    "https://",
  ])("%s is refused, and not repeated", (url) => {
    let thrown: unknown;
    try {
      requireTarget(url, allowed);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ metadata: { field: "url" } });
    expect((thrown as Error).message).not.toMatch("canary");
  });
});

test("a stored subscription has neither its address nor its secret", () => {
  expect(EventSubscriptionSchema.fields.map(({ name }) => name)).not.toContain("url");
  expect(EventSubscriptionSchema.fields.map(({ name }) => name)).not.toContain("secret");
});
