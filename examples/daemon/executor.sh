#!/bin/sh
# An executor in shell: it runs a command and asks the failsoft daemon what to do when it fails.
# Needs curl. Usage: FAILSOFT_TOKEN=fsd_… ./executor.sh TOOL COMMAND [ARGUMENT]...
set -u

url=${FAILSOFT_URL:-http://127.0.0.1:8585}
: "${FAILSOFT_TOKEN:?set it to the token of the daemon}"
tool=${1:?the id of the tool}
shift
call="$tool-$$-$(date +%s)" # the same for all attempts of this call

post() { # PATH BODY
  # The token goes in through standard input: arguments of a process can be read by others.
  printf 'header = "Authorization: Bearer %s"\n' "$FAILSOFT_TOKEN" |
    curl --silent --show-error --fail --max-time 2 --config - \
      --header 'Content-Type: application/json' --data-binary "$2" "$url$1"
}

quote() { # a JSON string out of standard input; other bytes than ASCII may be no valid text, above all after a cut
  printf '"%s"' "$(LC_ALL=C tr -d '\000-\010\013-\037' | LC_ALL=C tr '\200-\377' '[?*]' | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/	/ /g' | tr '\n' ' ' | cut -c1-4000)"
}


attempt=1
while :; do
  if error=$("$@" 2>&1 >/dev/null); then
    post /v1/outcomes "{\"tool\": \"$tool\", \"call_id\": \"$call\", \"status\": \"succeeded\", \"attempts\": $attempt}" >/dev/null
    echo "$tool succeeded on attempt $attempt"
    exit 0
  fi
  body="{\"tool\": \"$tool\", \"call_id\": \"$call\", \"attempt\": $attempt, \"error\": $(printf '%s' "$error" | quote)}"
  if ! answer=$(post /v1/errors "$body"); then
    echo "$tool failed, and the daemon cannot be asked: not repeated" >&2
    exit 1
  fi
  strategy=$(printf '%s' "$answer" | sed -n 's/.*"strategy": *"\([a-z_]*\)".*/\1/p')
  reason=$(printf '%s' "$answer" | sed -n 's/^[^{]*{"strategy": *"[a-z_]*", *"reason": *"\([^"]*\)".*/\1/p')
  echo "$tool failed ($error): $strategy. $reason"
  if [ "$strategy" != retry ]; then
    post /v1/outcomes "{\"tool\": \"$tool\", \"call_id\": \"$call\", \"status\": \"failed\", \"attempts\": $attempt}" >/dev/null
    exit 1
  fi
  sleep "$(printf '%s' "$answer" | sed -n 's/.*"delay": *\([0-9.]*\).*/\1/p' | head -n 1)"
  attempt=$((attempt + 1))
done
