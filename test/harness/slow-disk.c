/*
 * A slow disk for a process that is started with this library preloaded: each fsync and fdatasync
 * takes SLOW_DISK_MS longer. While the file that SLOW_DISK_BROKEN names exists, they fail with an
 * I/O error and force nothing. The file's first character is '1' for a single failure; the rest is
 * the end of the paths of the affected files.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(void) {
  const char *text = getenv("SLOW_DISK_MS");
  long ms = text ? strtol(text, NULL, 10) : 0;
  struct timespec left = {ms / 1000, (ms % 1000) * 1000000L};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

static int is_broken(int file) {
  const char *list = getenv("SLOW_DISK_BROKEN");
  if (list == NULL) return 0;
  int orders = open(list, O_RDONLY | O_CLOEXEC);
  if (orders < 0) return 0;
  char end[64] = "";
  ssize_t length = read(orders, end, sizeof end - 1);
  close(orders);
  char link[64], path[PATH_MAX] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (length < 1 || size < length - 1 || strcmp(path + size - (length - 1), end + 1) != 0) return 0;
  return end[0] != '1' || unlink(list) == 0;
}

static int force(const char *name, int file) {
  wait_for_disk();
  if (is_broken(file)) {
    errno = EIO;
    return -1;
  }
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  return real(file);
}

int fsync(int file) { return force("fsync", file); }
int fdatasync(int file) { return force("fdatasync", file); }
