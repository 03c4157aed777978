# Sourced by what runs on PHP's own web server: `serve FOLDER` starts one in $work, and sets $url; `page` asks for a page, with the
# cookies of those before, and fails where the server does.
work=$(mktemp -d)
serve() {
  local port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  url=http://127.0.0.1:$port
  PHP_CLI_SERVER_WORKERS=2 php -d session.save_path="$work" -d display_errors=1 -d error_reporting=22519 -S "127.0.0.1:$port" -t "$1" >"$work/php.log" 2>&1 &
  web=$!
  trap 'kill $web; rm -rf "$work"' EXIT
  for _ in $(seq 50); do curl -s -o /dev/null "$url" && break; sleep 0.1; done
}
page() { curl -sS -L --fail -b "$work/cookies" -c "$work/cookies" "$@"; }
# `has TEXT FILE`: the page in the file says this.
has() {
  grep -qF -- "$1" "$2" && return
  echo "no \"$1\" in the page:"
  head -c 1500 "$2"
  return 1
}
