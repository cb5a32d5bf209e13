import { expect, test } from "@jest/globals";
import { checkInSlices } from "./check-in-slices.ts";

test("other work runs between elements that take long, and each element keeps its error", async () => {
  const elements = Array.from({ length: 5 }, (_, index) => ({ index }));
  const order: string[] = [];
  setImmediate(() => order.push("another"));
  const require = await checkInSlices(elements, ({ index }) => {
    const end = performance.now() + 11;
    while (performance.now() < end);
    order.push(`element ${index}`);
    if (index === 3) throw new Error("no");
  });
  expect(order.indexOf("another")).toBeLessThan(order.length - 1);
  expect(order).toHaveLength(6);
  const [first, , , fourth] = elements;
  expect(() => require(first as never)).not.toThrow();
  expect(() => require(fourth as never)).toThrow("no");
});
