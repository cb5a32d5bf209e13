import type { Command } from "commander";
import { accessOf, CLIENT_SETTINGS, type ClientFlags } from "../client/server-access.ts";
import { StartError } from "../start-error.ts";
import { type Terminal, withSettings } from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadReviewCommands = () => import("../client/review.ts");

type ReviewFlags = ClientFlags & {
  readonly comment?: readonly string[];
  readonly summary?: string;
  readonly from?: string;
  readonly drafts?: boolean;
  readonly json?: boolean;
};

/** Declares `chartroom run review`. */
export function declareRunReview(run: Command, terminal: Terminal): void {
  withSettings(
    run
      .command("review")
      .description("review what a run has changed; with nothing to send, list the reviews that it got")
      .argument("<run>", "its id")
      .option(
        "--comment <place and text...>",
        "comment on lines, such as src/app.ts:12-15 'Join these'; may come again",
      )
      .option("--summary <text>", "what to say about the changes as a whole")
      .option("--from <file>", "send the review in a file, the JSON of service.v1.AgentReview")
      .option("--drafts", "list your drafts of reviews for the run")
      .option(
        "--json",
        "print JSON: a list of service.v1.AgentInput or AgentReviewDraft, or the message's id",
      )
      .action(async (id: string, { comment = [], summary, from, drafts, json, ...flags }: ReviewFlags) => {
        const access = accessOf(flags, terminal.env);
        const sends = comment.length > 0 || summary !== undefined || from !== undefined;
        if (sends && drafts) throw new StartError("--drafts lists drafts: it goes with nothing to send");
        const reviews = await loadReviewCommands();
        if (drafts) {
          const found = await reviews.listDrafts(access, id);
          terminal.print(json ? reviews.draftJson(found) : reviews.draftText(found));
        } else if (sends) {
          const inputId = await reviews.sendReview(access, id, { comments: comment, summary, from });
          terminal.print(json ? `${JSON.stringify({ inputId })}\n` : `${inputId}\n`);
        } else {
          const found = await reviews.listReviews(access, id);
          terminal.print(json ? reviews.reviewJson(found) : reviews.reviewText(found));
        }
      }),
    CLIENT_SETTINGS,
  );
}
