import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  CreateEventSubscriptionRequestSchema as Create,
  DeleteEventSubscriptionRequestSchema as Delete,
  ListEventDeliveriesRequestSchema as Deliveries,
  GetEventSubscriptionRequestSchema as Get,
  ListEventSubscriptionsRequestSchema as List,
  RedeliverEventRequestSchema as Redeliver,
  RotateEventSubscriptionSecretRequestSchema as Rotate,
  UpdateEventSubscriptionRequestSchema as Update,
} from "#gen/service/v1/event_subscription_service_pb.js";
import { brief, complaint, ID, lists, texts, withValue } from "./limit.ts";

type Limit = readonly [path: string, passes: readonly JsonValue[], fails: readonly JsonValue[]];

const noId: readonly JsonValue[] = ["", "x", `${ID}0`];

/** So many kinds, each another one. */
const kinds = (count: number) => Array.from({ length: count }, (_, at) => `project.${"a".repeat(at + 1)}`);
const kind = (characters: number) => `a.${"b".repeat(characters - 2)}`;

const KINDS_PASS: readonly JsonValue[] = [kinds(49), kinds(50), [kind(63)], [kind(64)], ["*"], ["project.*"]];
const KINDS_FAIL: readonly JsonValue[] = [
  kinds(51),
  [kind(65)],
  ["*", "*"],
  ["project"],
  ["Project.created"],
  ["project.created "],
  ["*.created"],
];

/** A valid request of each kind, into which the values are put. */
const VALID = new Map<DescMessage, JsonObject>([
  [Create, { name: "Chat", url: "https://hooks.example.org", eventKinds: ["*"] }],
  [Update, { eventSubscriptionId: ID }],
  [Get, { eventSubscriptionId: ID }],
  [List, {}],
  [Delete, { eventSubscriptionId: ID }],
  [Rotate, { eventSubscriptionId: ID }],
  [Deliveries, { eventSubscriptionId: ID }],
  [Redeliver, { eventDeliveryId: ID }],
]);

const LIMITS = new Map<DescMessage, readonly Limit[]>([
  [
    Create,
    [
      ["name", texts(1, 79, 80), texts(0, 81)],
      ["url", texts(1, 2_047, 2_048), texts(0, 2_049)],
      ["eventKinds", KINDS_PASS, [[], ...KINDS_FAIL]],
      ["format", [0, 1, 2], [3]],
    ],
  ],
  [
    Update,
    [
      ["eventSubscriptionId", [ID], noId],
      ["name", texts(1, 79, 80), texts(0, 81)],
      ["url", texts(1, 2_047, 2_048), texts(0, 2_049)],
      ["eventKinds", [[], ...KINDS_PASS], KINDS_FAIL],
      ["format", [1, 2], [0, 3]],
    ],
  ],
  [Get, [["eventSubscriptionId", [ID], noId]]],
  [List, [["pagination.pageSize", [0, 1, 99, 100], [-1, 101]]]],
  [Delete, [["eventSubscriptionId", [ID], noId]]],
  [Rotate, [["eventSubscriptionId", [ID], noId]]],
  [
    Deliveries,
    [
      ["eventSubscriptionId", [ID], noId],
      ["pagination.pageSize", [0, 1, 99, 100], [-1, 101]],
      ["filter.states", lists(1, 0, 9, 10), [...lists(1, 11), [5]]],
    ],
  ],
  [Redeliver, [["eventDeliveryId", [ID], noId]]],
]);

const rows = [...LIMITS].flatMap(([request, limits]) => limits.map((limit) => [request, ...limit] as const));
const tell = (request: DescMessage, at: string, value: JsonValue) =>
  complaint(request, withValue(VALID.get(request) ?? {}, at, value));

describe("a request about event subscriptions within a limit", () => {
  const cases = rows.flatMap(([request, at, passes]) =>
    passes.map((value) => [request.name, at, brief(value), request, value] as const),
  );
  test.each(cases)("%s.%s takes %s", (_, at, __, request, value) => {
    expect(tell(request, at, value)).toBeUndefined();
  });
});

describe("a request about event subscriptions past a limit", () => {
  const cases = rows.flatMap(([request, at, , fails]) =>
    fails.map((value) => [request.name, at, brief(value), request, value] as const),
  );
  test.each(cases)("%s.%s does not take %s", (_, at, __, request, value) => {
    expect(tell(request, at, value)).toContain(` [${at}`);
  });
});
