import { join } from "node:path";
import { post } from "../harness/call.ts";
import { copyData } from "../harness/data-config.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { addOrganization } from "../harness/organization.ts";
import { type HostedServer, startHostedServer, temporaryFolder } from "../harness/server.ts";
import { makeWorld, type World } from "./world.ts";

/** A world on a server that nothing else uses. */
export interface CopiedWorld {
  readonly server: HostedServer;
  readonly world: World;
  /** The token of the administrator of the world's organization. */
  readonly token: string;
}

/**
 * Makes the world of an organization once, and returns a function that copies it: that takes 100 ms of processor time,
 * where to make another one takes 500. Its servers let everybody create organizations.
 */
export async function worldToCopy(organization: string): Promise<() => Promise<CopiedWorld>> {
  // Its leases are older than those of a world that was just made.
  const args = ["--allow-organization-creation", ...LONG_LEASES];
  const first = await startHostedServer({ args });
  const { token } = await addOrganization(first, organization);
  const world = await makeWorld({ ...first, token });
  await first.stop();
  return async () => {
    const dataDir = join(temporaryFolder(), "data");
    copyData(first.dataDir, dataDir);
    const server = await startHostedServer({ dataDir, args });
    // The runner of a world that has been there for a while was heard meanwhile, as one that is there is.
    await succeeded(post(server, "WorkService/Heartbeat", {}, world.runnerToken));
    return { server, world, token };
  };
}
