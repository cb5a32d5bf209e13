import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  WorkflowActionSchema,
  WorkflowStepSchema,
  WorkflowTriggerSchema,
} from "#gen/service/v1/workflow_pb.js";
import type { DomainError } from "../error.ts";
import { checkAction, checkTriggers } from "./workflow-check.ts";

const NOW = Date.UTC(2026, 0, 1);

/** Returns the field that is rejected; undefined when none is. */
function refused(act: () => void): string | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    const { reason, metadata } = error as DomainError;
    expect(reason).toBe(ErrorReason.VALUE_UNUSABLE);
    return metadata.field;
  }
}

type Init<D extends DescMessage> = Extract<MessageInitShape<D>, { $typeName?: never }>;
type Trigger = Required<Pick<Init<typeof WorkflowTriggerSchema>, "trigger" | "context">>;
const agent: Trigger["context"] = { context: { case: "agent", value: { prompt: "x" } } };
const fromTrigger: Trigger["context"] = { context: { case: "fromTrigger", value: {} } };
const repositories = (...repoUrls: string[]): Trigger["context"] => ({
  context: {
    case: "repositories",
    value: { repositorySelector: { case: "repositoryUrls", value: { repoUrls } } },
  },
});
const search = (scmHost: string): Trigger["context"] => ({
  context: {
    case: "repositories",
    value: { repositorySelector: { case: "repoSelector", value: { scmHost, repoSearchString: "x" } } },
  },
});
const manual: Trigger["trigger"] = { case: "manual", value: {} };
const time = (cronExpression: string): Trigger["trigger"] => ({ case: "time", value: { cronExpression } });

const triggers = (...each: Trigger[]) =>
  refused(() =>
    checkTriggers(
      each.map((one) => create(WorkflowTriggerSchema, one)),
      NOW,
    ),
  );

describe("triggers", () => {
  test("of every kind and context are taken", () => {
    expect(
      triggers(
        { trigger: manual, context: agent },
        {
          trigger: time("*/5 * * * *"),
          context: repositories("https://git.example.org/a/b.git", "git@h:a/b"),
        },
        { trigger: { case: "pullRequest", value: {} }, context: fromTrigger },
        { trigger: { case: "pullRequest", value: {} }, context: search("git.example.org:8443") },
      ),
    ).toBeUndefined();
  });

  test.each(["* * * *", "60 * * * *", "0 0 31 2 *"])(
    "are refused with the cron expression %s",
    (expression) => {
      const second = { trigger: time(expression), context: agent };
      expect(triggers({ trigger: manual, context: agent }, second)).toBe("triggers[1].time.cronExpression");
    },
  );

  test.each([["manual", manual] as const, ["time", time("* * * * *")] as const])(
    "of the kind %s do not take their context from an event",
    (_, trigger) => {
      expect(triggers({ trigger, context: fromTrigger })).toBe("triggers[0].context.fromTrigger");
    },
  );

  test.each(["webhookId", "integrationId"])("are refused with a %s", (name) => {
    const trigger = {
      case: "pullRequest",
      value: { [name]: "0191f7a0-5c3e-7d1a-8b2f-000000000001" },
    } as const;
    expect(triggers({ trigger, context: agent })).toBe(`triggers[0].pullRequest.${name}`);
  });

  test("are refused with a repository that runners do not clone, which is named by its place", () => {
    expect(
      triggers({ trigger: manual, context: repositories("https://git.example.org/a", "/srv/git/a") }),
    ).toBe("triggers[0].context.repositories.repositoryUrls.repoUrls[1]");
  });

  test.each([
    "https://git.example.org",
    "git.example.org/a",
    "user@git.example.org",
    "a b",
    "a?b",
    "a#b",
    "h:x",
    "a\\b",
  ])("are refused with a search at %j, which is no host", (host) => {
    expect(triggers({ trigger: manual, context: search(host) })).toBe(
      "triggers[0].context.repositories.repoSelector.scmHost",
    );
  });

  test.each(["git.example.org", "GIT.example.org", "localhost:3000", "192.0.2.1", "[2001:db8::1]:443"])(
    "search at %s",
    (host) => {
      expect(triggers({ trigger: manual, context: search(host) })).toBeUndefined();
    },
  );
});

describe("an action", () => {
  type Step = Exclude<Init<typeof WorkflowStepSchema>["step"], undefined>;
  const report = (acceptanceCriteria: string): Step => ({
    case: "report",
    value: {
      outputs: [
        {
          title: "t",
          key: "k",
          acceptanceCriteria,
          schema: { case: "integer", value: {} },
          extraction: { case: "command", value: "x" },
        },
      ],
    },
  });
  const pullRequest: Step = { case: "pullRequest", value: { title: "t", branch: "b" } };
  const task: Step = { case: "task", value: { command: "true" } };
  const prompt: Step = { case: "agent", value: { prompt: "x" } };
  const check = (path: "action" | "report", ...steps: Step[]) =>
    refused(() =>
      checkAction(
        create(WorkflowActionSchema, { steps: steps.map((step) => create(WorkflowStepSchema, { step })) }),
        path,
      ),
    );

  test("takes steps of every kind", () => {
    expect(check("action", task, prompt, pullRequest, report("this > 0"))).toBeUndefined();
  });

  test("is refused with outputs that could not be judged", () => {
    expect(check("action", task, report("this >"))).toBe(
      "action.steps[1].report.outputs[0].acceptanceCriteria",
    );
    expect(check("report", report("this + 1"))).toBe("report.steps[0].report.outputs[0].acceptanceCriteria");
  });

  test("opens no pull request as the report, which has no repository", () => {
    expect(check("report", task, prompt, report("this > 0"))).toBeUndefined();
    expect(check("report", task, pullRequest)).toBe("report.steps[1].pullRequest");
  });
});

describe("a prompt that hides or reorders what is read", () => {
  const prompt = "a\u202eb\u{e0061}c";
  const action = (step: Init<typeof WorkflowStepSchema>["step"]) =>
    create(WorkflowActionSchema, {
      steps: [create(WorkflowStepSchema, { step: step ?? { case: undefined } })],
    });
  const requested = action({ case: "agent", value: { prompt } });
  const reported = action({
    case: "report",
    value: {
      outputs: [
        { key: "k", schema: { case: "string", value: {} }, extraction: { case: "prompt", value: prompt } },
      ],
    },
  });
  const started = create(WorkflowTriggerSchema, {
    trigger: { case: "manual", value: {} },
    context: { context: { case: "agent", value: { prompt } } },
  });

  test.each<[string, () => void]>([
    ["action.steps[0].agent.prompt", () => checkAction(requested, "action")],
    ["report.steps[0].report.outputs[0].prompt", () => checkAction(reported, "report")],
    ["triggers[0].context.agent.prompt", () => checkTriggers([started], NOW)],
  ])("is refused in %s, with what may be written", (field, act) => {
    expect(act).toThrow(
      expect.objectContaining({ reason: ErrorReason.TEXT_DECEPTIVE, metadata: { field, cleaned: "abc" } }),
    );
  });
});
