/*
 * Writes the seccomp filter of sandboxed work as a BPF program: filter ARCHITECTURE > FILE.
 * Compile with -lseccomp. npm run seccomp writes the files that are committed, and a test compares them.
 *
 * Everything is allowed but what is listed here: what reaches into the kernel or other processes, changes what is
 * mounted, makes namespaces, or that the default lists of container runtimes refuse. A system call that a kernel lists
 * only for another architecture is left out for this one.
 */
#include <errno.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static scmp_filter_ctx filter;

static void require(int result, const char *what) {
  if (result >= 0) return;
  fprintf(stderr, "%s: %s\n", what, strerror(-result));
  _exit(1);
}

static void refuse_with(int error, const char *name) {
  int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) return require(-ENOENT, name);
  int result = seccomp_rule_add_exact(filter, SCMP_ACT_ERRNO(error), number, 0);
  /* The architecture has no such call: it cannot be made either. */
  if (result == -EDOM || result == -EINVAL) return;
  require(result, name);
}

static void refuse_where(const char *name, struct scmp_arg_cmp comparison) {
  require(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), seccomp_syscall_resolve_name(name), 1, comparison), name);
}

static const char *const REFUSED[] = {
    /* Keys of the kernel, which are the user's and not the namespace's. */
    "add_key", "keyctl", "request_key",
    /* Programs and events in the kernel. */
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
    "fanotify_init", "lookup_dcookie",
    /* What is mounted. */
    "mount", "umount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount",
    "open_tree", "mount_setattr", "quotactl", "quotactl_fd", "swapon", "swapoff",
    /* Other namespaces, and files outside the paths of this one. */
    "setns", "open_by_handle_at", "name_to_handle_at",
    /* Memory, descriptors and identities of other processes. */
    "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp", "move_pages",
    "migrate_pages",
    /* The machine: its kernel, its clock, its ports. */
    "init_module", "finit_module", "delete_module", "create_module", "query_module", "get_kernel_syms",
    "kexec_load", "kexec_file_load", "reboot", "syslog", "acct", "vhangup", "iopl", "ioperm", "settimeofday",
    "stime", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "nfsservctl",
    "mbind", "set_mempolicy", "set_mempolicy_home_node",
    /* Old calls that nothing needs. */
    "_sysctl", "sysfs", "uselib", "ustat", "vm86", "vm86old",
};

static const unsigned long NAMESPACES[] = {
    CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET,
};

/* Families of sockets up to AF_NETLINK that are none of unix, IPv4, IPv6 and netlink. */
static const int FAMILIES[] = {3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15};

int main(int count, char **words) {
  if (count != 2) return 2;
  uint32_t architecture = seccomp_arch_resolve_name(words[1]);
  filter = seccomp_init(SCMP_ACT_ALLOW);
  if (!filter || architecture == 0) return 2;
  if (architecture != seccomp_arch_native()) {
    require(seccomp_arch_add(filter, architecture), "add");
    require(seccomp_arch_remove(filter, SCMP_ARCH_NATIVE), "remove");
  }
  /* Programs of another word size do not run: their calls have other numbers. */
  require(seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)), "architecture");
  for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) refuse_with(EPERM, REFUSED[i]);
  /* Its flags are in memory, where no filter reads: the C library then falls back to clone. */
  refuse_with(ENOSYS, "clone3");
  for (size_t i = 0; i < sizeof NAMESPACES / sizeof *NAMESPACES; i++) {
    refuse_where("clone", SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACES[i], NAMESPACES[i]));
    refuse_where("unshare", SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACES[i], NAMESPACES[i]));
  }
  refuse_where("unshare", SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWTIME, CLONE_NEWTIME));
  /* A process may be traced by the one that starts it, which debuggers need, and by no other: 16 attaches, and so
     does 0x4206, PTRACE_SEIZE. */
  refuse_where("ptrace", SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, 16));
  refuse_where("ptrace", SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, 0x4206));
  /* Input put into a terminal: TIOCSTI, TIOCLINUX. */
  refuse_where("ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, 0x5412));
  refuse_where("ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, 0x541c));
  /* Virtual machines (vsock), the kernel's ciphers, raw packets and the rest. */
  for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++)
    refuse_where("socket", SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, FAMILIES[i]));
  refuse_where("socket", SCMP_A0_64(SCMP_CMP_GT, 16));
  require(seccomp_export_bpf(filter, 1), "export");
  return 0;
}
