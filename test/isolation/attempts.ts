import { spawn } from "node:child_process";
import { mkdirSync, openSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { temporaryFolder } from "../harness/server.ts";
import { closedFolder, isRoot, removeAll } from "./sandboxes.ts";

/**
 * What a work tries to reach. Each attempt ends with 0 when it has reached it. The same attempt without isolation
 * shows that it would: a line that cannot fail shows nothing.
 */
export interface Attempt {
  readonly name: string;
  /** What stops it. */
  readonly means: "mounts" | "filter" | "pid namespace" | "no capabilities" | "limits";
  readonly script: string;
  /** Only root does it without isolation. */
  readonly needsRoot?: boolean;
}

/** Makes a system call; ends with 0 when the kernel carries it out. */
const call = (body: string) =>
  `exec /usr/bin/python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    return libc.syscall(*[ctypes.c_long(w) if isinstance(w, int) else w for w in words])
${body}
'`;
/** Reaches the kernel's answer about a family of sockets, which it need not have. */
const socketOf = (family: number) => `
import socket
try:
    socket.socket(${family}, 1, 0)
except PermissionError:
    sys.exit(1)
except OSError:
    pass`;
const x64 = process.arch === "x64";
/** The numbers of system calls here, and on the other architecture that there is a filter for. */
const number = (here: number, arm64: number) => (x64 ? here : arm64);

export const ATTEMPTS: readonly Attempt[] = [
  { name: "the key file by its path", means: "mounts", script: 'grep hidden "$DATA/key.json"' },
  { name: "the list of the data folder", means: "mounts", script: 'ls "$DATA" | grep key' },
  {
    name: "the key file by a symbolic link",
    means: "mounts",
    script: 'ln -s "$DATA/key.json" a; grep hidden a',
  },
  { name: "the key file by a hard link", means: "mounts", script: 'ln "$DATA/key.json" b && grep hidden b' },
  {
    name: "a hidden file in the system's folders",
    means: "mounts",
    script: 'grep hidden "$IN_SYSTEM"',
    needsRoot: true,
  },
  { name: "another workspace", means: "mounts", script: 'grep hidden "$OTHER/tree/file"' },
  {
    name: "what the runner keeps next to a workspace",
    means: "mounts",
    script: 'echo {} > "$WORKSPACE_FOLDER/complete.json"',
  },
  { name: "the user's own home", means: "mounts", script: 'grep hidden "$USERS_FILE"' },
  { name: "users of the machine", means: "mounts", script: "grep -q daemon /etc/passwd" },
  { name: "password hashes", means: "mounts", script: "cat /etc/shadow", needsRoot: true },
  {
    name: "writing to the system's folders",
    means: "mounts",
    script: "touch /usr/x && rm /usr/x",
    needsRoot: true,
  },
  { name: "writing to the root folder", means: "mounts", script: "touch /x && rm /x", needsRoot: true },
  {
    name: "writing next to the devices",
    means: "mounts",
    script: "touch /dev/x && rm /dev/x",
    needsRoot: true,
  },
  { name: "the machine's /tmp", means: "mounts", script: 'ls -d "$MACHINES_TMP"' },
  {
    name: "the disk as a device",
    means: "mounts",
    script: "ls /dev/vda /dev/sda /dev/nvme0n1 /dev/root /dev/loop0 2>/dev/null | grep .",
    needsRoot: true,
  },
  {
    name: "settings of the kernel",
    means: "mounts",
    script: "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern",
    needsRoot: true,
  },
  {
    name: "the files of a process by its root",
    means: "pid namespace",
    script: 'grep hidden "/proc/$PID/root$DATA/key.json"',
  },
  {
    name: "the files of a process by its descriptors",
    means: "pid namespace",
    script: "grep hidden /proc/$PID/fd/3",
  },
  { name: "the folder of a process", means: "pid namespace", script: "ls /proc/$PID/cwd/key.json" },
  {
    name: "the variables of a process",
    means: "pid namespace",
    script: "grep -a MARK_OF_OTHERS /proc/$PID/environ",
  },
  {
    name: "the arguments of all processes",
    means: "pid namespace",
    script: "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -x \"$MARK\"",
  },
  { name: "a signal to the runner", means: "pid namespace", script: "kill -0 $RUNNER" },
  { name: "a signal to another process", means: "pid namespace", script: "kill -0 $PID" },
  {
    name: "the namespaces of the machine",
    means: "filter",
    script: call(`sys.exit(0 if call(${number(308, 268)}, os.open("/proc/self/ns/uts", 0), 0) == 0 else 1)`),
    needsRoot: true,
  },
  { name: "a device node", means: "no capabilities", script: "mknod disk b 1 0", needsRoot: true },
  { name: "a mount", means: "filter", script: "mkdir m; mount -t tmpfs none m && umount m", needsRoot: true },
  { name: "another root folder", means: "no capabilities", script: "chroot / true", needsRoot: true },
  { name: "another user", means: "no capabilities", script: "setpriv --reuid 1 true", needsRoot: true },
  {
    name: "the owner of a file",
    means: "no capabilities",
    script: "touch own; chown 1 own",
    needsRoot: true,
  },
  { name: "the name of the machine", means: "filter", script: 'hostname "$(hostname)"', needsRoot: true },
  { name: "a second user namespace", means: "filter", script: "unshare --user true" },
  {
    name: "a second user namespace by clone",
    means: "filter",
    script: call(
      `pid = call(${number(56, 220)}, 0x10000000 | 17, 0, 0, 0, 0)\nif pid == 0: os._exit(0)\nsys.exit(0 if pid > 0 else 1)`,
    ),
  },
  {
    name: "keys of the kernel",
    means: "filter",
    script: call(`sys.exit(0 if call(${number(248, 217)}, b"user", b"a", b"b", 1, -2) > 0 else 1)`),
  },
  {
    name: "programs in the kernel",
    means: "filter",
    script: call(
      `attr = (ctypes.c_uint32 * 32)(2, 4, 4, 1)\nsys.exit(0 if call(${number(321, 280)}, 0, attr, 128) > 0 else 1)`,
    ),
    needsRoot: true,
  },
  {
    name: "io_uring",
    means: "filter",
    script: call("sys.exit(0 if call(425, 1, ctypes.create_string_buffer(120)) > 0 else 1)"),
  },
  {
    name: "faults of memory",
    means: "filter",
    script: call(`sys.exit(0 if call(${number(323, 282)}, 1) > 0 else 1)`),
  },
  {
    name: "the memory of a sibling",
    means: "filter",
    script: `sleep 60 & ${call(`import subprocess\nother = subprocess.Popen(["sleep", "60"])\nended = call(${number(101, 117)}, 0x4206, other.pid, 0, 0)\nother.kill()\nsys.exit(0 if ended == 0 else 1)`)}`,
  },
  {
    name: "the kernel's ciphers by a socket",
    means: "filter",
    script: call(socketOf(38)),
  },
  {
    name: "the machine's hypervisor by a socket",
    means: "filter",
    script: call(socketOf(40)),
  },
  {
    name: "raw packets",
    means: "filter",
    script: call("import socket\nsocket.socket(17, 3, 0)"),
    needsRoot: true,
  },
  { name: "core dumps", means: "limits", script: "ulimit -c unlimited", needsRoot: true },
  {
    name: "more processes than are allowed",
    means: "limits",
    script:
      "i=0; while [ $i -lt 400 ]; do sleep 20 & i=$((i+1)); done; [ $(ls -d /proc/[0-9]* | wc -l) -gt 300 ]",
  },
  {
    name: "more memory than is allowed",
    means: "limits",
    script: "exec /usr/bin/python3 -c 'bytearray(700 * 1024 * 1024)'",
  },
];

export interface World {
  /** The variables of attempts. */
  readonly variables: Readonly<Record<string, string>>;
  /** Files that no sandbox may show. */
  readonly hidden: readonly string[];
  close(): Promise<void>;
}

/** Makes what attempts are after: files, a process, and an abstract socket of the machine. */
export function makeWorld(): World {
  const data = temporaryFolder();
  writeFileSync(join(data, "key.json"), "hidden\n");
  const others = temporaryFolder();
  mkdirSync(join(others, "tree"));
  writeFileSync(join(others, "tree/file"), "hidden\n");
  const usersFile = join(closedFolder(), "file");
  writeFileSync(usersFile, "hidden\n");
  const inSystem = isRoot ? "/usr/local/share/chartroom-escape-test" : "";
  if (isRoot) writeFileSync(inSystem, "hidden\n", { mode: 0o644 });
  const other = spawn("sh", ["-c", "sleep 1000; true", "mark-of-argument"], {
    detached: true,
    cwd: data,
    env: { PATH: process.env.PATH, MARK_OF_OTHERS: "1" },
    stdio: ["ignore", "ignore", "ignore", openSync(join(data, "key.json"), "r")],
  });
  const abstract = createServer((socket) => socket.end("reached")).listen("\0chartroom-escape-test");
  return {
    hidden: [data, ...(isRoot ? [inSystem] : [])],
    variables: {
      DATA: data,
      OTHER: others,
      IN_SYSTEM: inSystem,
      MACHINES_TMP: others,
      USERS_FILE: usersFile,
      PID: String(other.pid),
      // As an expression that does not match itself.
      MARK: "mark-of-argumen[t]",
      RUNNER: String(process.pid),
    },
    async close() {
      // With the sleep that it waits for.
      process.kill(-(other.pid ?? Number.NaN), "SIGKILL");
      abstract.close();
      if (isRoot) rmSync(inSystem, { force: true });
      await removeAll();
    },
  };
}

/** Prints what the abstract socket of the machine says. */
export const ABSTRACT_SOCKET = `exec /usr/bin/python3 -c '
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("\\0chartroom-escape-test")
print(s.recv(100).decode())'`;
