#!/bin/sh
# Removes servers that are not ready from nginx, which itself notices only unreachable ones. Polls each server once a
# second, writes the list that nginx.conf includes, and reloads nginx when the list changes.
#
#   nginx-ready.sh /etc/nginx/chartroom-servers.conf 10.0.0.11:8080 10.0.0.12:8080
#
# NGINX_RELOAD is the command that reloads nginx.
set -u
file=$1
shift

is_ready() {
  curl --silent --fail --output /dev/null --max-time 2 --retry 1 --retry-connrefused "http://$1/readyz"
}

# When no server is ready, all remain in the list, so that callers get a server's response and not nginx's.
list() {
  some=
  lines=
  for server; do
    if is_ready "$server"; then
      some=1
      lines="${lines}server $server;
"
    else
      lines="${lines}server $server down;
"
    fi
  done
  if [ -z "$some" ]; then for server; do echo "server $server;"; done; else printf %s "$lines"; fi
}

while :; do
  list "$@" > "$file.new"
  if cmp -s "$file.new" "$file"; then
    rm "$file.new"
  else
    mv "$file.new" "$file"
    ${NGINX_RELOAD:-systemctl reload nginx}
  fi
  sleep 1
done
