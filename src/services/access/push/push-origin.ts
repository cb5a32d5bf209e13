import type { AgentInput } from "#gen/service/v1/agent_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { ServiceAccountSchema } from "#gen/service/v1/service_account_pb.js";
import type { PushOrigin } from "../../../domain/environment/environment-push.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import { findNewestExecutionIn } from "../../../store/agent/agent-execution-environment.ts";
import { findAccount } from "../../../store/identity/account.ts";
import { findServiceAccount } from "../../../store/identity/service-account.ts";
import { fromBody } from "../../../store/json.ts";
import type { Reader, Scope } from "../../../store/store.ts";

/** The source of a push's default names, and the agent run that it belongs to. */
export interface FoundOrigin extends PushOrigin {
  /** Empty for none. */
  readonly agentExecutionId: string;
}

/** Returns the source of the default names of a push: the newest agent run in the environment, or the environment. */
export async function findPushOrigin(
  db: Reader,
  scope: Scope,
  { id, metadata }: Environment,
): Promise<FoundOrigin> {
  const run = await findNewestExecutionIn(db, scope, id);
  if (!run) return { id, name: metadata?.name ?? "", firstMessage: "", agentExecutionId: "" };
  return {
    id: run.id,
    name: run.name,
    firstMessage: run.firstInput ? textOf(run.firstInput) : "",
    agentExecutionId: run.id,
  };
}

function textOf({ input }: AgentInput): string {
  if (input.case !== "userInput") return "";
  return input.value.inputs
    .flatMap((part) => (part.input.case === "text" ? [part.input.value.content] : []))
    .join("\n");
}

/** Returns the author of a commit made from a caller's uncommitted changes. */
export async function findAuthor(
  db: Reader,
  caller: Caller,
): Promise<{ readonly authorName: string; readonly authorEmail: string }> {
  const { id, principal } = caller.subject;
  if (principal === Principal.SERVICE_ACCOUNT) {
    const account = await findServiceAccount(db, caller, id);
    const name = account && fromBody(ServiceAccountSchema, account.body).name;
    return { authorName: plain(name ?? "") || "Chartroom", authorEmail: `${id}@noreply.invalid` };
  }
  const account = await findAccount(db, caller.accountId);
  return {
    authorName: plain(account?.name ?? "") || "Chartroom",
    authorEmail: plain(account?.email ?? "") || `${id}@noreply.invalid`,
  };
}

/** Returns a text without the characters that end a name or an address in a commit. */
function plain(text: string): string {
  return text.replaceAll(/[<>\p{Cc}]+/gu, " ").trim();
}
