import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { makeAgentDefault, unregisterAgent } from "../../../src/services/agent/agent-registry.ts";
import { findAgent, findAgents, findDefaultAgent } from "../../../src/store/agent/agent.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { addAgent } from "./agents.ts";

let made: TestStore;
let harbour: Caller;
let island: Caller;
beforeEach(async () => {
  made = openTestStore();
  harbour = await made.createOrganization("harbour");
  island = await made.createOrganization("island");
});
afterEach(() => made.close());

const defaultOf = async (scope: Caller) => (await findDefaultAgent(made.store.reader, scope))?.agent.name;

test("an agent is kept with its command, and found by those who see it", async () => {
  const id = await addAgent(made, harbour.organizationId, { command: '["sh", "-c", "coder < plan"]' });
  expect(await findAgent(made.store.reader, harbour, id)).toMatchObject({
    agent: { id, name: "coder", own: true, default: false },
    command: ["sh", "-c", "coder < plan"],
    form: AgentForm.TEXT,
  });
  expect(await findAgent(made.store.reader, island, id)).toBeUndefined();
});

describe("the default", () => {
  test("is the organization's own before that of all", async () => {
    expect(await defaultOf(harbour)).toBeUndefined();
    await addAgent(made, null, { name: "common", isDefault: true });
    expect(await defaultOf(harbour)).toBe("common");
    await addAgent(made, harbour.organizationId, { name: "own" });
    expect(await defaultOf(harbour)).toBe("common");
    await makeAgentDefault(made.store, harbour.organizationId, "own");
    expect([await defaultOf(harbour), await defaultOf(island)]).toEqual(["own", "common"]);
    await unregisterAgent(made.store, harbour.organizationId, "own");
    expect(await defaultOf(harbour)).toBe("common");
  });

  test("is one of each owner at most", async () => {
    await addAgent(made, null, { name: "first", isDefault: true });
    await addAgent(made, harbour.organizationId, { name: "own", isDefault: true });
    const second = await addAgent(made, null, { name: "second" });
    await makeAgentDefault(made.store, null, second.toUpperCase());
    const marks = (await findAgents(made.store.reader)).map(({ agent }) => [agent.name, agent.default]);
    expect(Object.fromEntries(marks)).toEqual({ first: false, own: true, second: true });
  });
});

describe("a name", () => {
  test("is seen once by every organization", async () => {
    const taken = {
      reason: ErrorReason.VALUE_UNUSABLE,
      message: "an agent of the name coder is registered already",
    };
    await addAgent(made, harbour.organizationId);
    await expect(addAgent(made, harbour.organizationId)).rejects.toMatchObject(taken);
    await expect(addAgent(made, null)).rejects.toMatchObject(taken);
    await addAgent(made, island.organizationId);
    await addAgent(made, null, { name: "common" });
    await expect(addAgent(made, island.organizationId, { name: "common" })).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
    });
  });

  test("names an agent of its owner alone", async () => {
    await addAgent(made, harbour.organizationId);
    for (const owner of [null, island.organizationId]) {
      await expect(unregisterAgent(made.store, owner, "coder")).rejects.toMatchObject({
        reason: ErrorReason.NOT_FOUND,
      });
    }
    await unregisterAgent(made.store, harbour.organizationId, "coder");
    expect(await findAgents(made.store.reader)).toEqual([]);
  });
});

test("what the operator does with agents is recorded where they are seen, without their commands", async () => {
  await addAgent(made, harbour.organizationId, { command: "coder --key hidden", isDefault: true });
  await unregisterAgent(made.store, harbour.organizationId, "coder");
  const { audit, events } = await made.history(harbour);
  const rows = audit.filter(({ subject_type }) => subject_type === "agent");
  expect(rows.map(({ operation, actor_id }) => [operation, actor_id])).toEqual([
    ["chartroom agent add", "operator"],
    ["chartroom agent add", "operator"],
    ["chartroom agent remove", "operator"],
  ]);
  expect(JSON.stringify(rows)).not.toContain("hidden");
  expect(events.filter(({ resource_type }) => resource_type === "agent")).toHaveLength(3);
});
