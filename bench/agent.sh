#!/usr/bin/env bash
# An agent that answers each message with the moment at which it got it, in
# seconds since 1970; before the answer to "work" come blocks of every kind, as
# of an agent that edits a file. It starts no other program, so that little but
# the service and the runner is measured. With the argument "resumable" it says
# that another process of it can go on.
[ "$1" = resumable ] && printf '{"type":"resumable"}\n'
while IFS= read -r line; do
  got=$EPOCHREALTIME
  case $line in
  *'"type":"stop"'*) exit 0 ;;
  *'"type":"user_input"'*)
    id=${line##*'"id":"'}
    id=${id%%\"*}
    printf '{"type":"seen","id":"%s"}\n' "$id"
    case $line in
    *'"text":"work"'*)
      call='{"type":"tool_call","id":"'$id'"'
      printf '%s\n' \
        '{"type":"thought","content":"The greeting is in one file only, so an edit of that is enough."}' \
        '{"type":"plan","entries":[{"content":"Find the greeting","state":"done"},{"content":"Change it","state":"running"}]}' \
        "$call"',"title":"Edit src/greeting.js","kind":"edit","state":"pending","locations":[{"path":"src/greeting.js","line":1}],"input":{"old":"Hello","new":"Good day"}}' \
        "$call"',"state":"running"}' \
        "$call"',"state":"done","result":"1 line was changed","diffs":[{"path":"src/greeting.js","diff":"--- a/src/greeting.js\n+++ b/src/greeting.js\n@@ -1 +1 @@\n-say(\"Hello\");\n+say(\"Good day\");\n"}]}' \
        '{"type":"usage_update","inputTokens":1200,"outputTokens":150,"contextUsed":8000,"contextSize":200000,"cost":{"amount":0.01,"currency":"EUR"}}'
      ;;
    esac
    printf '{"type":"text","content":"%s"}\n{"type":"turn_done"}\n' "$got"
    ;;
  esac
done
