#!/bin/sh
# Writes the filters of system calls into a folder: sh scripts/seccomp/compile.sh src/runner/isolation/seccomp
# Needs Debian's gcc and libseccomp-dev.
set -eu
program=$(mktemp)
trap 'rm -f "$program"' EXIT
cc -O1 -Wall -Werror -o "$program" "$(dirname "$0")/filter.c" -lseccomp
for architecture in x86_64 aarch64; do
  "$program" "$architecture" > "$1/$architecture.bpf"
done
