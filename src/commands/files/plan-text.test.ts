import { expect, test } from "@jest/globals";
import { KINDS } from "./kinds.ts";
import { PLANNED, planText } from "./plan-text.ts";

test("a plan has a line for each field, whatever people call an annotation", () => {
  const [kind] = KINDS.filter(({ name }) => name === "Group");
  if (!kind) throw new Error("there is no kind Group");
  const after = { annotations: { values: { "team\n- Group/others": "\u{1b}[2J" } } };
  const resource = {
    action: "create",
    kind,
    name: "a",
    id: "",
    after,
    isUnowned: false,
    changes: [],
  } as const;
  expect(planText({ owner: "platform", resources: [resource] }, PLANNED)).toBe(
    '+ Group/a\n    annotations.values."team\\n- Group/others": "\\u001b[2J"\n\n1 to create; 0 unchanged\n',
  );
});
