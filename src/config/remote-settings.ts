import { boolean, hosts, integer, oneOf } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** The settings that restrict where requests to source-control hosts may be sent. */
export const REMOTE_SETTINGS = {
  allowPrivateRemotes: setting({
    flag: "--allow-private-remotes",
    env: "CHARTROOM_ALLOW_PRIVATE_REMOTES",
    default: "false",
    help: "allow repositories and source-control hosts at private addresses",
    read: boolean,
  }),
  allowFileRemotes: setting({
    flag: "--allow-file-remotes",
    env: "CHARTROOM_ALLOW_FILE_REMOTES",
    default: "false",
    help: "allow repositories in folders of the runner's machine, as file:///srv/git/hello.git",
    read: boolean,
  }),
  plainHttpHosts: setting({
    flag: "--plain-http-hosts",
    argument: "hosts",
    env: "CHARTROOM_PLAIN_HTTP_HOSTS",
    default: "",
    help: "comma-separated source-control hosts to contact over http instead of https, with credentials",
    read: hosts,
  }),
  sshKeyFile: setting({
    flag: "--ssh-key-file",
    argument: "file",
    env: "CHARTROOM_SSH_KEY_FILE",
    default: "",
    help: "private key for cloning repositories over SSH; none by default",
    read: (text: string) => text,
  }),
} as const;

/** The settings that restrict where events may be sent. */
export const WEBHOOK_SETTINGS = {
  webhookPrivateHosts: setting({
    flag: "--webhook-private-hosts",
    argument: "hosts",
    env: "CHARTROOM_WEBHOOK_PRIVATE_HOSTS",
    default: "",
    help: "comma-separated hosts to which webhooks may send events at private addresses or over http",
    read: hosts,
  }),
} as const;

/** The settings of a runner's cache of cloned repositories. */
export const REPOSITORY_CACHE_SETTINGS = {
  repositoryCache: setting({
    flag: "--repository-cache",
    argument: "on|off",
    env: "CHARTROOM_REPOSITORY_CACHE",
    default: "on",
    help: "cache the objects of cloned repositories for later clones; off deletes the cache",
    read: oneOf(["on", "off"]),
  }),
  repositoryCacheSize: setting({
    flag: "--repository-cache-size",
    argument: "MiB",
    env: "CHARTROOM_REPOSITORY_CACHE_SIZE",
    default: "10240",
    help: "maximum size of the repository cache; beyond it, the least recently used repositories are removed",
    read: integer(1, 1_073_741_824),
  }),
} as const;
