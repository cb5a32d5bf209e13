import { afterAll, describe, expect } from "@jest/globals";
import {
  answersOn,
  endEarlierExecutions,
  makeEarlierExecutions,
  OLDER,
} from "../harness/earlier-executions.ts";
import { testUnless } from "../harness/program.ts";
import { withRawData } from "../harness/raw-data.ts";
import { lackOf, sourcesOf } from "../harness/release.ts";
import { startServer, stopAll } from "../harness/server.ts";
import { storageProblems } from "../harness/stored-bytes.ts";

afterAll(stopAll);

const env = { CHARTROOM_LEASE_DURATION: "3600" };

describe("the data folder of the release before executions had columns of their own", () => {
  testUnless(lackOf(OLDER))(
    "is answered from as before, goes on, and is refused to that release",
    async () => {
      const release = sourcesOf(OLDER);
      const older = await startServer({ release, env });
      const { dataDir, token } = older;
      const made = await makeEarlierExecutions(older);
      const before = await answersOn(older, made.ids);
      expect(await older.stop()).toBe(0);

      const server = { ...(await startServer({ dataDir, env })), token };
      expect(await answersOn(server, made.ids)).toEqual(before);
      await endEarlierExecutions(server, made);
      const { workflowExecutions } = await answersOn(server, made.ids);
      expect(
        workflowExecutions.map(({ status }: { status: { phase: string } }) => status.phase),
      ).not.toContain("WORKFLOW_EXECUTION_PHASE_STOPPING");
      expect(server.log().filter(({ table }) => table !== undefined)).toMatchObject([
        { table: "workflow_execution", done: made.ids.length, total: made.ids.length },
        { table: "workflow_action" },
      ]);
      expect(await server.stop()).toBe(0);
      expect(await withRawData(dataDir, storageProblems)).toEqual([]);
      await expect(startServer({ release, dataDir, env })).rejects.toThrow(
        "the database holds the migration 0021-workflow-progress, which this release does not know",
      );
    },
  );
});
