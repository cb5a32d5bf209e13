import { type Command, Option } from "commander";
import { accessOf, CLIENT_SETTINGS, type ClientFlags } from "../client/server-access.ts";
import type { DeliveryStateName, WebhookSecret } from "../client/webhook.ts";
import { StartError } from "../start-error.ts";
import { widthOf } from "../terminal/terminal-width.ts";
import { numberOption, type Terminal, withSettings } from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadWebhooks = () => import("../client/webhook.ts");

const STATES: readonly DeliveryStateName[] = ["pending", "delivered", "failed", "redelivering"];

type Json = { readonly json?: boolean };
type Listing = ClientFlags & Json & { readonly limit: number };

/** Declares `chartroom webhook ...`. */
export function declareWebhook(program: Command, terminal: Terminal): void {
  const webhook = program
    .command("webhook")
    .description("manage webhooks, which send events of the organization to a URL, and their deliveries");
  withSettings(
    webhook
      .command("list")
      .description("list webhooks of the organization")
      .option(
        "--limit <number>",
        "maximum number of webhooks to list",
        numberOption("--limit", 1, 100_000),
        50,
      )
      .option("--json", "print a JSON list of service.v1.EventSubscription")
      .action(async ({ limit, json, ...flags }: Listing) => {
        const access = accessOf(flags, terminal);
        const { listWebhooks, webhooksJson, webhookTable } = await loadWebhooks();
        const found = await listWebhooks(access, limit);
        terminal.print(json ? webhooksJson(found) : webhookTable(found, widthOf(terminal)));
      }),
    CLIENT_SETTINGS,
  );
  withSettings(
    webhook
      .command("create")
      .description(
        "create a webhook for the URL on standard input; print its id and its secret, which is shown only once",
      )
      .argument("<name>", "name of the webhook, at most 80 characters")
      .requiredOption("--event <kinds...>", "kinds of events to send, such as approval.asked or project.*")
      .option("--chat", "send sentences, in the format of incoming webhooks of chat services")
      .option("--json", "print a JSON object with eventSubscriptionId and secret")
      .action(
        async (
          name: string,
          {
            event: eventKinds,
            chat: isChat = false,
            json,
            ...flags
          }: ClientFlags & Json & { readonly event: readonly string[]; readonly chat?: boolean },
        ) => {
          const access = accessOf(flags, terminal);
          const url = await addressIn(terminal);
          const { createWebhook } = await loadWebhooks();
          tellSecret(terminal, await createWebhook(access, { name, url, eventKinds, isChat }), json);
        },
      ),
    CLIENT_SETTINGS,
  );
  withSettings(
    webhook
      .command("rotate")
      .description(
        "create a new secret for a webhook and print it, only once; for 24 hours both secrets sign deliveries",
      )
      .argument("<webhook>", "id of the webhook")
      .option("--json", "print a JSON object with eventSubscriptionId and secret")
      .action(async (id: string, { json, ...flags }: ClientFlags & Json) => {
        const access = accessOf(flags, terminal);
        const { rotateWebhookSecret } = await loadWebhooks();
        tellSecret(terminal, await rotateWebhookSecret(access, id), json);
      }),
    CLIENT_SETTINGS,
  );
  for (const [name, paused, description] of [
    ["pause", true, "pause deliveries to a webhook"],
    ["resume", false, "resume deliveries to a webhook where they were paused"],
  ] as const) {
    withSettings(
      webhook
        .command(name)
        .description(description)
        .argument("<webhook>", "id of the webhook")
        .action(async (id: string, flags: ClientFlags) => {
          const access = accessOf(flags, terminal);
          await (await loadWebhooks()).pauseWebhook(access, id, paused);
        }),
      CLIENT_SETTINGS,
    );
  }
  withSettings(
    webhook
      .command("delete")
      .description("delete a webhook and its ledger")
      .argument("<webhook>", "id of the webhook")
      .action(async (id: string, flags: ClientFlags) => {
        const access = accessOf(flags, terminal);
        await (await loadWebhooks()).deleteWebhook(access, id);
      }),
    CLIENT_SETTINGS,
  );
  declareLedger(webhook, terminal);
}

function declareLedger(webhook: Command, terminal: Terminal): void {
  withSettings(
    webhook
      .command("ledger")
      .description("list deliveries to a webhook and their results, newest event first")
      .argument("<webhook>", "id of the webhook")
      .addOption(new Option("--state <states...>", "only entries in these states").choices([...STATES]))
      .option(
        "--limit <number>",
        "maximum number of entries to list",
        numberOption("--limit", 1, 100_000),
        50,
      )
      .option("--json", "print a JSON list of service.v1.EventDelivery")
      .action(
        async (
          id: string,
          {
            state: states = [],
            limit,
            json,
            ...flags
          }: Listing & { readonly state?: readonly DeliveryStateName[] },
        ) => {
          const access = accessOf(flags, terminal);
          const { deliveriesJson, deliveryTable, listDeliveries } = await loadWebhooks();
          const found = await listDeliveries(access, id, { states, limit });
          terminal.print(json ? deliveriesJson(found) : deliveryTable(found, widthOf(terminal)));
        },
      ),
    CLIENT_SETTINGS,
  );
  withSettings(
    webhook
      .command("redeliver")
      .description("send an event again, with the same id")
      .argument("<delivery>", "id of the entry in the ledger")
      .action(async (id: string, flags: ClientFlags) => {
        const access = accessOf(flags, terminal);
        await (await loadWebhooks()).redeliver(access, id);
      }),
    CLIENT_SETTINGS,
  );
}

function tellSecret(terminal: Terminal, made: WebhookSecret, json: boolean | undefined): void {
  terminal.print(json ? `${JSON.stringify(made)}\n` : `${made.eventSubscriptionId}\n${made.secret}\n`);
  if (json) return;
  terminal.printError("chartroom: the second line is the secret of the webhook, shown only once\n");
}

/**
 * Reads an address from standard input: addresses of chat services contain a credential, which a process list would
 * show to others.
 */
async function addressIn({ input }: Terminal): Promise<string> {
  const { text } = await import("node:stream/consumers");
  const address = input.isTTY ? "" : (await text(input)).trim();
  if (address === "")
    throw new StartError(
      "give the address of the webhook by standard input: chartroom webhook create ... < FILE",
    );
  return address;
}
