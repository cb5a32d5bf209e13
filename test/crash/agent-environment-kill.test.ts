import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { builderOf } from "../../src/store/query-builder.ts";
import { addScriptedAgent, closeConversations, conversationOf } from "../harness/agent-conversation.ts";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { expireAllLeases } from "../harness/lease.ts";
import { withServerData } from "../harness/member.ts";
import { serveRepositories } from "../harness/served-repository.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";
import type { HeldCall, ServerProxy } from "../harness/server-proxy.ts";
import { until } from "../harness/until.ts";
import { createWorld } from "./held-actions.ts";

afterAll(stopAll);

/** Moments in the life of an agent's run that is leased together with its new environment. */
const MOMENTS: Readonly<Record<string, (proxy: ServerProxy) => HeldCall>> = {
  "leased without an answer": (proxy) =>
    proxy.holdResponse(
      "leaseWork",
      ({ kinds }, { works }) => kinds.includes(WorkKind.AGENT) && works.length > 0,
    ),
  "the repository is cloned": (proxy) => proxy.holdRequest("getHostCredential"),
  "made and not reported": (proxy) => proxy.holdRequest("reportAgent"),
  "reported and not answered": (proxy) => proxy.holdResponse("reportAgent"),
};
const victims = ["runner", "server"] as const;
const cases = Object.keys(MOMENTS).flatMap((moment) => victims.map((victim) => ({ moment, victim })));

test.each(cases)(
  "when it is $moment and the $victim is killed, the run goes on in one environment",
  async ({ moment, victim }) => {
    const world = await createWorld({ leaseSeconds: 3_600 });
    await addScriptedAgent(world.server, join(temporaryFolder(), "got"));
    const [repository] = serveRepositories(["hello"], world.host);
    const held = MOMENTS[moment]?.(world.proxy);
    const context = { contextUrl: { url: repository?.cloneUrl } };
    const { agentExecutionId } = await succeeded(
      post(world.api, "AgentService/StartAgent", { codeContext: context }),
    );
    await held?.reached;

    if (victim === "runner") {
      await world.killRunner();
      held?.release();
      await expireAllLeases(world.server);
      await world.restartRunner();
    } else {
      await world.killServer();
      await world.restartServer();
      held?.release();
      // The runner never heard of this lease.
      if (moment === "leased without an answer") await expireAllLeases(world.server);
    }

    const conversation = conversationOf(world.api, agentExecutionId);
    const { status } = await conversation.untilPhase("WAITING_FOR_INPUT");
    await conversation.say("first", "echo hello");
    await conversation.untilOutput("hello");
    const [{ environmentId }] = status.usedEnvironments;
    const { environment } = await succeeded(
      post(world.api, "EnvironmentService/GetEnvironment", { environmentId }),
    );
    expect(environment.status.phase).toBe("ENVIRONMENT_PHASE_RUNNING");
    expect(environment.status.failureMessage).toEqual([]);
    expect(readdirSync(join(world.runner.stateDir, "workspaces"))).toEqual([environmentId]);
    expect(readdirSync(join(world.runner.stateDir, "workspaces", environmentId, "tree", "hello"))).toContain(
      "name.txt",
    );
    const works = () =>
      withServerData(world.server, ({ reader }) =>
        builderOf(reader).selectFrom("work").select(["kind", "subject_id"]).execute(),
      );
    expect(await works()).toEqual([{ kind: WorkKind.AGENT, subject_id: agentExecutionId }]);

    await conversation.stop();
    await conversation.untilPhase("STOPPED");
    // The environment is stopped with its last run.
    await until(works, (left) => left.length === 0);
    closeConversations();
    await world.stop();
  },
);
