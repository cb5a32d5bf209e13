import { Code, ConnectError } from "@connectrpc/connect";
import type { Secrets } from "../../domain/secrets.ts";
import type { CredentialFor } from "../git/git-access.ts";
import { CALL_MS, type WorkClient } from "../protocol/connection.ts";

/**
 * Returns a function that requests the credential of the person who asks a question from the server when git needs it.
 *
 * @param questionId id of the question; the server returns the credential for it
 * @param secrets the credential is added to these
 */
export function credentialOfQuestion(
  client: Pick<WorkClient, "getQuestionCredential">,
  questionId: string,
  secrets: Secrets,
  signal: AbortSignal,
): CredentialFor {
  return async (host) => {
    try {
      const credential = await client.getQuestionCredential(
        { questionId, host },
        { timeoutMs: CALL_MS, signal },
      );
      secrets.add(credential.token);
      return credential;
    } catch (error) {
      const { code, rawMessage } = ConnectError.from(error);
      // A public repository can be read without a credential.
      if (code === Code.NotFound) {
        return {
          withheld: `you have no credential for ${host} at this runner: store one with CreateHostAuthenticationToken`,
        };
      }
      if (code === Code.FailedPrecondition) return { withheld: rawMessage };
      throw error;
    }
  };
}
