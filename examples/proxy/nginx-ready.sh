#!/bin/sh
# Keeps servers that are not ready out of nginx, which by itself notices only those that it cannot reach. Asks each of
# them once a second, writes the list that nginx.conf includes, and has nginx read it when it changes.
#
#   nginx-ready.sh /etc/nginx/chartroom-servers.conf 10.0.0.11:8080 10.0.0.12:8080
#
# NGINX_RELOAD is the command that makes nginx read its files again.
set -u
file=$1
shift

is_ready() {
  curl --silent --fail --output /dev/null --max-time 2 --retry 1 --retry-connrefused "http://$1/readyz"
}

# Where no server is ready all stay in, so that callers get the answer of one and not that of nginx.
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
