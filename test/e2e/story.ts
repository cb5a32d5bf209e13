import { repository } from "../harness/call.ts";
import { withPlaceholders } from "./placeholders.ts";
import type { Outcome, Speak } from "./speak/outcome.ts";

const NOWHERE = "0190c0de-0000-7000-8000-000000000000";

/**
 * A project's life in calls, with one request that breaks a rule and one that
 * finds nothing. What came of each call, in order, with placeholders: the same
 * for every client.
 */
export async function tellStory(speak: Speak): Promise<(readonly [string, Outcome])[]> {
  const outcomes: (readonly [string, Outcome])[] = [];
  const call = async (operation: string, request: object): Promise<Outcome> => {
    const outcome = await speak(operation, request);
    outcomes.push([operation, outcome]);
    return outcome;
  };
  const created = await call("CreateProject", {
    name: "Grüße 🚀",
    initializer: repository("https://git.example.org/team/hello.git"),
    technicalDescription: "line one\nline two",
    annotations: { "example.org/team": "shop", empty: "" },
    prebuildConfiguration: { enabled: true, trigger: { dailySchedule: { hourUtc: 0 } } },
  });
  const projectId = projectIdOf(created);
  await call("GetProject", { projectId });
  await call("ListProjects", { filter: { projectIds: [projectId] }, count: { include: true } });
  await call("UpdateProject", {
    projectId,
    devcontainerFilePath: ".devcontainer/devcontainer.json",
    recommendedEditors: { editors: { vim: { versions: [] }, code: { versions: ["1.99"] } } },
  });
  await call("UpdateProject", { projectId, name: "", automationsFilePath: "/automations.yaml" });
  await call("DeleteProject", { projectId });
  await call("GetProject", { projectId });
  await call("GetProject", { projectId: NOWHERE });
  return withPlaceholders(outcomes);
}

function projectIdOf(outcome: Outcome): string {
  if (!("answer" in outcome)) throw new Error(`no project was created: ${JSON.stringify(outcome)}`);
  return (outcome.answer as { project: { id: string } }).project.id;
}
