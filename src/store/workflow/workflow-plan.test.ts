import { expect, test } from "@jest/globals";
import { PlanCache } from "./workflow-plan.ts";

test("plans are kept up to so many characters with their ids, and those go first that were asked for longest ago", () => {
  const kept = new PlanCache(303);
  const keep = (id: string, characters = 100) => kept.put(id, { plan: {}, characters });
  const known = () => ["a", "b", "c", "d"].filter((id) => kept.get(id));
  for (const id of ["a", "b", "c"]) keep(id);
  expect(known()).toEqual(["a", "b", "c"]);
  keep("a");
  keep("d", 101);
  expect(known()).toEqual(["a", "d"]);
  keep("b");
  expect(known()).toEqual(["a", "b", "d"].filter((id) => id !== "a"));
});

test("a plan that is larger than all that is kept is not kept", () => {
  const kept = new PlanCache(100);
  kept.put("a", { plan: {}, characters: 100 });
  expect(kept.get("a")).toBeUndefined();
  kept.put("a", { plan: {}, characters: 99 });
  expect(kept.get("a")).toBeDefined();
});
