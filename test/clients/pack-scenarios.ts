import { expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import type { TestServer } from "../harness/server.ts";
import type { Relay } from "./relay.ts";
import { runScenario, type ScenarioProgram } from "./scenarios.ts";

/** Defines the tests of a packed client; the server and the program are fetched when a test runs. */
export function testPack(server: () => TestServer, program: () => ScenarioProgram): void {
  const run = (scenario: string, prepare?: (relay: Relay, token: string) => void) =>
    runScenario(server(), program(), scenario, prepare);

  test("walks a list by pages and by entries", async () => {
    const names = ["listed-0", "listed-1", "listed-2", "listed-3", "listed-4"];
    expect((await run("list")).result).toEqual({ pages: [2, 2, 1], names });
  });

  test("gives the reason and the violations of an error", async () => {
    const { code, ...failure } = (await run("error")).result;
    expect(code.replaceAll("_", "").toLowerCase()).toBe("invalidargument");
    expect(failure).toEqual({
      reason: expect.stringMatching(/^(ERROR_REASON_)?CONSTRAINT_VIOLATED$/),
      metadata: { violations: "1" },
      violations: [{ field: "project_id", rule: "string.uuid", message: "must be a valid UUID" }],
    });
  });

  test("makes a call again whose answer was lost, and creates one project", async () => {
    let ids = async (): Promise<string[]> => [];
    const { result } = await run("lost", (relay, token) => {
      ids = () => projectsOf(server(), token);
      void relay.holdBack("team/lost").then(async () => {
        while ((await ids()).length === 0);
        relay.cut();
      });
    });
    expect(await ids()).toEqual([result.id]);
  });

  test("resumes a stream that was cut, without a loss and without a repetition", async () => {
    const { events, projects } = (await run("stream")).result;
    const sequences: number[] = events.map((each: { sequence: number }) => each.sequence);
    expect(sequences).toEqual([...new Set(sequences)].toSorted((one, other) => one - other));
    const ids = events.map((each: { resourceId: string }) => each.resourceId);
    expect(ids.filter((id: string) => projects.includes(id))).toEqual(projects);
  });
}

async function projectsOf(server: TestServer, token: string): Promise<string[]> {
  const { body } = await post(server, "ProjectService/ListProjects", {}, token);
  return body.projects.map((each: { id: string }) => each.id);
}
