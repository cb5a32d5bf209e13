import { boolean, hosts, integer, oneOf } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** The settings that restrict where requests to source-control hosts may be sent. */
export const REMOTE_SETTINGS = {
  allowPrivateRemotes: setting({
    flag: "--allow-private-remotes",
    env: "CHARTROOM_ALLOW_PRIVATE_REMOTES",
    default: "false",
    help: "let repositories and their hosts be at addresses that are not public",
    read: boolean,
  }),
  allowFileRemotes: setting({
    flag: "--allow-file-remotes",
    env: "CHARTROOM_ALLOW_FILE_REMOTES",
    default: "false",
    help: "let repositories be folders of the runner's machine, as file:///srv/git/hello.git",
    read: boolean,
  }),
  plainHttpHosts: setting({
    flag: "--plain-http-hosts",
    argument: "hosts",
    env: "CHARTROOM_PLAIN_HTTP_HOSTS",
    default: "",
    help: "source-control hosts, separated by commas, that are asked over http instead of https, with credentials",
    read: hosts,
  }),
  sshKeyFile: setting({
    flag: "--ssh-key-file",
    argument: "file",
    env: "CHARTROOM_SSH_KEY_FILE",
    default: "",
    help: "private key for repositories that are cloned by ssh; none by default",
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
    help: "hosts, separated by commas, to which subscriptions may send events although they are at addresses that are not public, or over http",
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
    help: "keep the objects of repositories that were cloned for the next clone; off removes those that were kept",
    read: oneOf(["on", "off"]),
  }),
  repositoryCacheSize: setting({
    flag: "--repository-cache-size",
    argument: "MiB",
    env: "CHARTROOM_REPOSITORY_CACHE_SIZE",
    default: "10240",
    help: "size of all repositories that are kept; beyond it the least recently used ones are removed",
    read: integer(1, 1_073_741_824),
  }),
} as const;
