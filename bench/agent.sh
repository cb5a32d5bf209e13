#!/usr/bin/env bash
# An agent that answers each message with the moment at which it got it, in
# seconds since 1970. It starts no other program, so that little but the service
# and the runner is measured.
while IFS= read -r line; do
  got=$EPOCHREALTIME
  case $line in
  *'"type":"stop"'*) exit 0 ;;
  *'"type":"user_input"'*)
    id=${line##*'"id":"'}
    printf '{"type":"seen","id":"%s"}\n{"type":"text","content":"%s"}\n{"type":"turn_done"}\n' "${id%%\"*}" "$got"
    ;;
  esac
done
