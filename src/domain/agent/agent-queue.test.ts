import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../test/harness/seed.ts";
import {
  type AgentQueue,
  newlyPlacedInputs,
  nextInput,
  withInput,
  withMovedInput,
  withoutInput,
  withSteeredInput,
} from "./agent-queue.ts";

const EMPTY: AgentQueue = { revision: 0, inputs: [] };

const ids = ({ inputs }: AgentQueue) => inputs.map(({ id }) => id);
const of = (...names: string[]) => names.reduce((queue, name) => withInput(queue, name, false), EMPTY);

/** The queue as two lists, which is all that clients see of it. */
interface Model {
  urgent: string[];
  rest: string[];
}

type Step =
  | { kind: "add"; steer: boolean }
  | { kind: "remove"; at: number }
  | { kind: "steer"; at: number }
  | { kind: "move"; at: number; before: number | null };

const at = fc.nat(20);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("add" as const), steer: fc.boolean() }),
  fc.record({ kind: fc.constant("remove" as const), at }),
  fc.record({ kind: fc.constant("steer" as const), at }),
  fc.record({ kind: fc.constant("move" as const), at, before: fc.option(at) }),
);

/** Applies a step to both; returns undefined where the step names an input and there is none. */
function taken(queue: AgentQueue, model: Model, step: Step, number: number): [AgentQueue, Model] | undefined {
  const all = [...model.urgent, ...model.rest];
  const named = (index: number) => all[index % all.length] ?? "";
  const without = (id: string) => ({
    urgent: model.urgent.filter((each) => each !== id),
    rest: model.rest.filter((each) => each !== id),
  });
  if (step.kind === "add") {
    const id = `input ${number}`;
    const [urgent, rest] = step.steer
      ? [[...model.urgent, id], model.rest]
      : [model.urgent, [...model.rest, id]];
    return [withInput(queue, id, step.steer), { urgent, rest }];
  }
  if (all.length === 0) return undefined;
  const id = named(step.at);
  const left = without(id);
  if (step.kind === "remove") return [withoutInput(queue, id), left];
  if (step.kind === "steer") {
    const next = model.urgent.includes(id) ? model : { ...left, urgent: [...left.urgent, id] };
    return [withSteeredInput(queue, id), next];
  }
  const beforeId = step.before === null ? "" : named(step.before);
  if (beforeId === id) return [withMovedInput(queue, id, beforeId), model];
  const index = left.urgent.includes(beforeId) ? 0 : left.rest.indexOf(beforeId);
  const rest = left.rest.toSpliced(beforeId === "" ? left.rest.length : index, 0, id);
  return [withMovedInput(queue, id, beforeId), { urgent: left.urgent, rest }];
}

describe("a queue", () => {
  test("keeps the order that a list keeps, whatever is done to it", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        let queue = EMPTY;
        let model: Model = { urgent: [], rest: [] };
        for (const [number, each] of steps.entries()) {
          const next = taken(queue, model, each, number);
          if (!next) continue;
          const isSame = JSON.stringify(next[1]) === JSON.stringify(model);
          expect(next[0].revision).toBe(queue.revision + (isSame ? 0 : 1));
          const kept = new Map(queue.inputs.map((input) => [input.id, input]));
          for (const placed of newlyPlacedInputs(queue, next[0])) kept.set(placed.id, placed);
          [queue, model] = next;
          expect(ids(queue)).toEqual([...model.urgent, ...model.rest]);
          expect(queue.inputs.map(({ steer }) => steer)).toEqual([
            ...model.urgent.map(() => true),
            ...model.rest.map(() => false),
          ]);
          // The rows written for a change contain the whole change.
          const stored = [...kept.values()].filter(({ id }) => ids(queue).includes(id));
          expect(stored.sort((one, other) => one.place - other.place)).toEqual(queue.inputs);
          expect(new Set(queue.inputs.map(({ place }) => place)).size).toBe(queue.inputs.length);
        }
      }),
      { numRuns: 300, ...replay },
    );
  });

  test("writes only the input that moves, as long as there is room between its neighbours", () => {
    const queue = of("a", "b", "c");
    const next = withMovedInput(queue, "c", "b");
    expect(ids(next)).toEqual(["a", "c", "b"]);
    expect(newlyPlacedInputs(queue, next).map(({ id }) => id)).toEqual(["c"]);
  });

  test("makes room when its inputs have been moved between the same two a hundred times", () => {
    let queue = of("first", "a", "b", "last");
    let maxPlaced = 0;
    for (let time = 0; time < 100; time++) {
      const id = time % 2 === 0 ? "b" : "a";
      const next = withMovedInput(queue, id, time % 2 === 0 ? "a" : "b");
      maxPlaced = Math.max(maxPlaced, newlyPlacedInputs(queue, next).length);
      queue = next;
      expect(ids(queue)).toEqual(time % 2 === 0 ? ["first", "b", "a", "last"] : ["first", "a", "b", "last"]);
    }
    expect(maxPlaced).toBe(4);
  });

  test("is not changed by a move to where the input is, or of a steer of what is steered", () => {
    const queue = withSteeredInput(of("a", "b", "c"), "b");
    expect(ids(queue)).toEqual(["b", "a", "c"]);
    expect(withSteeredInput(queue, "b")).toBe(queue);
    expect(withMovedInput(queue, "a", "c")).toBe(queue);
    expect(withMovedInput(queue, "a", "a")).toBe(queue);
    expect(withMovedInput(queue, "c", "")).toBe(queue);
  });

  test("delivers what is steered at once, and the rest only to an idle agent", () => {
    const queue = of("a", "b");
    expect(nextInput(queue, false)).toBeUndefined();
    expect(nextInput(queue, true)?.id).toBe("a");
    expect(nextInput(withSteeredInput(queue, "b"), false)?.id).toBe("b");
    expect(nextInput(EMPTY, true)).toBeUndefined();
  });

  test("takes the steering back from what is moved, and lets nothing before what is steered", () => {
    const queue = withSteeredInput(withSteeredInput(of("a", "b", "c"), "b"), "c");
    expect(ids(queue)).toEqual(["b", "c", "a"]);
    const back = withMovedInput(queue, "b", "");
    expect(ids(back)).toEqual(["c", "a", "b"]);
    expect(nextInput(withoutInput(back, "c"), false)).toBeUndefined();
    expect(ids(withMovedInput(back, "b", "c"))).toEqual(["c", "b", "a"]);
  });

  test("refuses to change what it does not hold", () => {
    for (const change of [withoutInput, withSteeredInput])
      expect(() => change(EMPTY, "a")).toThrow("not queued");
    expect(() => withMovedInput(EMPTY, "a", "")).toThrow("not queued");
  });
});
