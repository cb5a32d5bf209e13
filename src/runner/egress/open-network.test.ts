import { create } from "@bufbuild/protobuf";
import { afterAll, expect, test } from "@jest/globals";
import { WorkSchema } from "#gen/runner/v1/work_pb.js";
import { realTools } from "../../../test/harness/assignment.ts";
import { stopAll } from "../../../test/harness/server.ts";
import { openNetwork } from "./open-network.ts";

afterAll(stopAll);

test("work with a policy is refused where nothing isolates it, and other work has the machine's network", async () => {
  const tools = await realTools();
  const place = { folder: "/nonexistent" };
  const work = create(WorkSchema, { policies: { egress: {} } });
  await expect(openNetwork({ tools, work }, place, undefined)).rejects.toMatchObject({
    reason: "policy_unsupported",
    message: expect.stringContaining("egress"),
  });
  expect(await openNetwork({ tools, work: create(WorkSchema) }, place, undefined)).toBeUndefined();
});
