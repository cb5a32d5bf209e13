import { boolean } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** Settings of the runner beside a server, and of what it begins with. */
export const LOCAL_RUNNER_SETTINGS = {
  localRunner: setting({
    flag: "--local-runner",
    env: "CHARTROOM_LOCAL_RUNNER",
    default: "false",
    help: "carry out work in folders on this machine; --isolation says what keeps it in",
    read: boolean,
  }),
  sampleData: setting({
    flag: "--sample-data",
    env: "CHARTROOM_SAMPLE_DATA",
    default: "false",
    help: "fill a fresh data folder with projects, agent runs and workflows to look at, and carry their work out with the local runner; refused where there is data",
    read: boolean,
  }),
  localRunnerWorkDir: setting({
    flag: "--local-runner-work-dir",
    argument: "folder",
    env: "CHARTROOM_LOCAL_RUNNER_WORK_DIR",
    default: "",
    help: "folder of the local runner's workspaces; by default one of the server's own in $XDG_STATE_HOME/chartroom, or ~/.local/state/chartroom",
    read: (text: string) => text,
  }),
};
