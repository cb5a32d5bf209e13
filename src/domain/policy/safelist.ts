/**
 * Names of executables that no deny list can block: without the shells, the first process, the
 * container runtime and the login, an environment could neither start nor be entered to correct the
 * policy.
 */
export const SAFELIST: readonly string[] = [
  "agetty",
  "ash",
  "bash",
  "busybox",
  "conmon",
  "containerd",
  "containerd-shim-runc-v2",
  "crun",
  "dash",
  "docker-init",
  "dockerd",
  "dumb-init",
  "env",
  "init",
  "ld-linux-aarch64.so.1",
  "ld-linux-x86-64.so.2",
  "login",
  "mount",
  "runc",
  "sh",
  "sshd",
  "systemd",
  "systemd-executor",
  "tini",
  "umount",
];
