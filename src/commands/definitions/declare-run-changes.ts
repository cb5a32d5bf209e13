import type { Command } from "commander";
import { printable } from "../client/printable.ts";
import type { DiffChoice } from "../client/run/changes.ts";
import { accessOf, CLIENT_SETTINGS, type ClientFlags } from "../client/server-access.ts";
import { StartError } from "../start-error.ts";
import { widthOf } from "../terminal/terminal-width.ts";
import { type Terminal, withSettings } from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadChanges = () => import("../client/run/changes.ts");
const loadReviewCommands = () => import("../client/run/review.ts");

type DiffFlags = ClientFlags & Partial<Omit<DiffChoice, "run">> & { readonly json?: boolean };
type FilesFlags = ClientFlags & { readonly json?: boolean; readonly content?: boolean };
type ReviewFlags = ClientFlags & {
  readonly comment?: readonly string[];
  readonly summary?: string;
  readonly from?: string;
  readonly drafts?: boolean;
  readonly json?: boolean;
};

/** Declares `chartroom run diff` and `chartroom run files`. */
export function declareRunChanges(run: Command, terminal: Terminal): void {
  const isTerminal = (terminal.output as { readonly isTTY?: boolean }).isTTY === true;
  const { env, print, ignoreInterrupts } = terminal;
  const output = { env, isTerminal, print, ignoreInterrupts };
  withSettings(
    run
      .command("diff")
      .description("show a run's changes as a git diff")
      .argument("<run>", "id of the run")
      .option("--last-turn", "compare with the beginning of the last turn")
      .option("--commit <hash>", "compare with this commit; the runner computes the diff now")
      .option("--refresh", "have the runner compute the diff first")
      .option("--json", "print a JSON list of service.v1.EnvironmentFileDiff")
      .action(
        async (id: string, { lastTurn = false, commit, refresh = false, json, ...flags }: DiffFlags) => {
          const access = accessOf(flags, terminal);
          const { diffJson, diffText, readRunDiff } = await loadChanges();
          const diff = await readRunDiff(access, { run: id, commit, lastTurn, refresh });
          const { hasColours, showPaged } = await import("../client/pager.ts");
          if (json) terminal.print(diffJson(diff));
          else await showPaged(diffText(diff, hasColours(output)), output);
          if (diff.problem) throw diff.problem;
        },
      ),
    CLIENT_SETTINGS,
  );
  withSettings(
    run
      .command("files")
      .description("list a folder or print a file of a run's environment, as it is now")
      .argument("<run>", "id of the run")
      .argument("[path]", "path in the environment; by default, the folder that contains its repositories")
      .option("--content", "print the contents of the file")
      .option("--json", "print a JSON list of service.v1.EnvironmentFile")
      .action(async (id: string, path = "", { content, json, ...flags }: FilesFlags) => {
        const access = accessOf(flags, terminal);
        const { filesJson, filesTable, listRunFiles, readRunFile } = await loadChanges();
        const place = { run: id, path: path.replace(/(?<=.)\/+$/, "") };
        if (content) {
          const decoder = new TextDecoder();
          // Unchanged when the output is not a terminal.
          return readRunFile(access, place, (data) => {
            if (!isTerminal) terminal.output.write(data);
            else terminal.print(printable(decoder.decode(data, { stream: true })));
          });
        }
        const files = await listRunFiles(access, place);
        terminal.print(json ? filesJson(files) : filesTable(files, widthOf(terminal)));
      }),
    CLIENT_SETTINGS,
  );
}

/** Declares `chartroom run review`. */
export function declareRunReview(run: Command, terminal: Terminal): void {
  withSettings(
    run
      .command("review")
      .description("send a review of a run's changes; without one to send, list the reviews of the run")
      .argument("<run>", "id of the run")
      .option(
        "--comment <place and text...>",
        "comment on lines, such as src/app.ts:12-15 'Join these'; can be repeated",
      )
      .option("--summary <text>", "summary of the review")
      .option("--from <file>", "send the review in this file, a service.v1.AgentReview as JSON")
      .option("--drafts", "list your draft reviews of the run")
      .option(
        "--json",
        "print JSON: a list of service.v1.AgentInput or AgentReviewDraft, or an object with inputId",
      )
      .action(async (id: string, { comment = [], summary, from, drafts, json, ...flags }: ReviewFlags) => {
        const access = accessOf(flags, terminal);
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
