import type { Transport } from "@connectrpc/connect";
import type { Config } from "../../config/config.ts";
import type { Keys } from "../../keys.ts";
import type { Log } from "../../log.ts";
import type { Store } from "../../store/store.ts";
import type { Terminal } from "../definitions/command-line.ts";
import { createFurtherOrganization, type FirstTokens, signInAddress } from "../first-start.ts";
import { fillSample } from "./fill-sample.ts";
import { dataFlags, flagsOf, makeRepositories, SAMPLE_ORGANIZATION, sampleFolder } from "./sample-data.ts";

export { requireFreshData, SAMPLE_ORGANIZATION, sampleSettings } from "./sample-data.ts";

/** What the sample of a first start needs. */
export interface FirstStart {
  readonly store: Store;
  readonly keys: Keys;
  readonly log: Log;
  readonly terminal: Pick<Terminal, "print">;
  readonly transport: Transport;
  readonly organizationId: string;
  readonly token: string;
}

/** Creates the sample's organization in addition to that of an earlier, unused first start. */
export const createSampleOrganization = (store: Store, keys: Keys): Promise<FirstTokens> =>
  createFurtherOrganization(store, keys, SAMPLE_ORGANIZATION);

/** Returns the text to print when the sample's organization is an additional one. */
export function welcome(url: string, first: FirstTokens): string {
  return `
The organization "${SAMPLE_ORGANIZATION}" was created in addition to yours, with the same administrator.
Sign in to it with this link in a browser, once and within 15 minutes ("chartroom member sign-in" prints another):

  ${signInAddress(url, first)}

`;
}

/** Starts to fill the organization of a first start in the background; the server already answers. */
export function startSample(config: Config, { log, terminal, ...start }: FirstStart) {
  const ending = new AbortController();
  terminal.print(noteOf(config));
  const filled = makeRepositories(config)
    .then((repositories) => fillSample({ ...start, repositories, signal: ending.signal }))
    .then(async (carryOutPush) => {
      log.info({}, "the sample data is there");
      await carryOutPush().catch((err) => {
        if (!ending.signal.aborted) log.info({ err }, "the push of the sample was not carried out");
      });
    })
    .catch((err) => {
      if (!ending.signal.aborted) log.error({ err }, "the sample data could not be made whole");
    });
  return {
    async stop(): Promise<void> {
      ending.abort();
      await filled;
    },
  };
}

function noteOf(config: Config): string {
  return `Sample data is being made: projects, runs of a scripted agent, a push that waits for you, and workflows.
It is in the organization "${SAMPLE_ORGANIZATION}"; its repositories are in ${sampleFolder(config)}.
To continue with it after a stop:

  npm start -- ${flagsOf(config)}

To remove it while the server is stopped:

  npx chartroom organization remove "${SAMPLE_ORGANIZATION}" --yes --force${dataFlags(config)}

`;
}
