#!/usr/bin/env bash
# A small story over the service and the fake's control interface, with curl:
# an agent is created and answers, a limit is used up, a day passes, it opens.
# AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY are the address and the key of a fake
# that runs; ./run starts one.
set -euo pipefail

base=${AGENT_MESSAGING_BASE_URL:?is the address of a running fake, such as http://127.0.0.1:8460}
control=$base/_fake/v1
token=${AGENT_MESSAGING_FAKE_TOKEN:-} # needed where the fake is on another machine
key=${AGENT_MESSAGING_API_KEY:?is the key that the fake printed}

# call METHOD URL [BODY] calls with the key of the story, and prints the status
# and the body.
call() { request "$key" "$@"; }

# control METHOD PATH [BODY] does so with the control token.
control() { request "$token" "$1" "$control$2" "${@:3}"; }

request() {
  local bearer=$1 method=$2 url=$3 args=()
  if [[ -n $bearer ]]; then args+=(-H "Authorization: Bearer $bearer"); fi
  if [[ $# -gt 3 ]]; then args+=(-H 'Content-Type: application/json' -d "$4"); fi
  curl -sS --noproxy '*' -X "$method" "${args[@]}" -w '\n%{http_code}' "$url" | awk '{ line[NR] = $0 } END { print line[NR]; for (i = 1; i < NR; i++) print line[i] }'
}

# member NAME prints a string of an answer. The answers here hold each once.
member() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

# want WHAT ANSWER TEXT ends the story where the answer does not hold the text.
want() {
  if [[ $2 != *"$3"* ]]; then
    printf 'not ok: %s\n  want: %s\n  got:  %s\n' "$1" "$3" "$2"
    exit 1
  fi
  echo "ok: $1"
}

want 'an empty fake' "$(control POST /reset)" 204

agent=$(call POST "$base/v1/agents" '{"system_prompt":"Be brief."}' | member agent_id)
want 'an agent' "$agent" agent_

want 'a scripted reply' "$(control POST "/replies" \
  '{"match":{"text_containing":"order"},"replies":[{"text":"It is on its way."}]}')" 201
want 'the reply' "$(call POST "$base/v1/agents/$agent/messages" '{"text":"Where is my order?"}')" 'It is on its way.'

want 'a limit used up' "$(control POST "/keys/key_000001/limits/key_day/exhaust")" 204
want 'a call refused' "$(call GET "$base/v1/agents/$agent")" 429
want 'a day later' "$(control POST "/clock" '{"duration":"24h"}')" 200
want 'a call that passes' "$(call GET "$base/v1/agents/$agent")" 200

want 'what was sent' "$(control GET "/calls?timeout=5s&text_containing=order")" 'Where is my order?'
