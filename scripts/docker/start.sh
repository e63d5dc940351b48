#!/usr/bin/env bash
# What the container `workbench` runs: JupyterLab, TensorBoard over the runs, and sshd with keys only, as any user, with a read-only
# root too. With words behind the image's name it runs these in place of JupyterLab, beside sshd and TensorBoard.
#
# Environment, as RunPod, Vast and Lambda's users set it:
#   PUBLIC_KEY, SSH_PUBLIC_KEY       keys that may log in over ssh; without one sshd is not started
#   JUPYTER_TOKEN, JUPYTER_PASSWORD, OPEN_BUTTON_TOKEN   JupyterLab's token, the first that is set; else a new one, printed once
#   WORKSPACE                        the folder of notebooks and runs, a mounted volume (default /workspace)
#   JUPYTER_PORT, SSH_PORT           default 8888, and 2222 (22 as root); 0 leaves one out
#   TENSORBOARD_PORT                 starts TensorBoard there; it asks for no password and shows the images of runs, so it is off else
set -euo pipefail
say() { printf 'start: %s\n' "$*" >&2; }
die() { printf 'start: error: %s\n' "$*" >&2; exit 2; }

workspace=${WORKSPACE:-/workspace}
uid=$(id -u)
[ -d "$workspace" ] || die "$workspace is not there: mount a volume there, or name another folder with WORKSPACE"
[ -w "$workspace" ] || die "$workspace cannot be written by user $uid: mount a volume that it owns, or start the container with --user 0"
for name in JUPYTER_PORT TENSORBOARD_PORT SSH_PORT; do
  [[ "${!name:-0}" =~ ^[0-9]{1,5}$ ]] || die "$name: must be a port, or 0 for none (got ${!name})"
done

# What only lives as long as the container. A root that is read-only leaves the workspace.
state=$(mktemp -d 2>/dev/null || mktemp -d -p "$workspace" .start-XXXXXX)
chmod 700 "$state"
trap 'rm -rf "$state"; kill $(jobs -p) 2>/dev/null || true' EXIT
if [ ! -w "${HOME:-/}" ]; then export HOME=$state; fi
export JUPYTER_RUNTIME_DIR=$state/jupyter JUPYTER_DATA_DIR=$state/jupyter-data JUPYTER_CONFIG_DIR=$state/jupyter-config
export IPYTHONDIR=$state/ipython TMPDIR=${TMPDIR:-$state}

# A user that the container's /etc/passwd does not know gets a name, which sshd and JupyterLab ask for. (podman adds such a user
# itself, named after the number.)
if ! getent passwd "$uid" >/dev/null; then
  { cat /etc/passwd; echo "sdtune-$uid:x:$uid:$(id -g):sdtune:$HOME:/bin/bash"; } >"$state/passwd"
  cp /etc/group "$state/group"
  NSS_WRAPPER_PASSWD=$state/passwd NSS_WRAPPER_GROUP=$state/group LD_PRELOAD=$(ls /usr/lib/*/libnss_wrapper.so)
  export NSS_WRAPPER_PASSWD NSS_WRAPPER_GROUP LD_PRELOAD
fi

start_sshd() {
  local port=$1 keys="${PUBLIC_KEY:-}"$'\n'"${SSH_PUBLIC_KEY:-}"
  grep -Eq '^(ssh-|ecdsa-|sk-)' <<<"$keys" || die "PUBLIC_KEY: is no public key of OpenSSH (it begins with ssh-ed25519 or the like)"
  mkdir -p "$state/ssh"
  printf '%s\n' "$keys" >"$state/ssh/authorized_keys"
  chmod 600 "$state/ssh/authorized_keys"
  ssh-keygen -q -t ed25519 -N "" -f "$state/ssh/host_key"
  cat >"$state/ssh/sshd_config" <<CONFIG
Port $port
HostKey $state/ssh/host_key
AuthorizedKeysFile $state/ssh/authorized_keys
PidFile none
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
StrictModes no
SetEnv PATH=$PATH WORKSPACE=$workspace${LD_LIBRARY_PATH:+ LD_LIBRARY_PATH=$LD_LIBRARY_PATH}
Subsystem sftp /usr/lib/openssh/sftp-server
CONFIG
  if [ "$uid" -eq 0 ]; then mkdir -p /run/sshd; fi
  /usr/sbin/sshd -D -e -f "$state/ssh/sshd_config" 2>>"$state/ssh/log" &
  say "sshd on port $port, keys only, for user $(id -un)"
}

ssh_port=${SSH_PORT:-$([ "$uid" -eq 0 ] && echo 22 || echo 2222)}
if [ "$ssh_port" -eq 0 ]; then :
elif [ -n "${PUBLIC_KEY:-}${SSH_PUBLIC_KEY:-}" ]; then start_sshd "$ssh_port"
else say "no sshd: neither PUBLIC_KEY nor SSH_PUBLIC_KEY is set"
fi

cd "$workspace"
tensorboard_port=${TENSORBOARD_PORT:-0}
if [ "$tensorboard_port" -ne 0 ]; then
  mkdir -p runs
  tensorboard --logdir runs --host 0.0.0.0 --port "$tensorboard_port" >"$state/tensorboard.log" 2>&1 &
  say "TensorBoard of $workspace/runs on port $tensorboard_port"
fi

if [ $# -gt 0 ]; then
  # tini signals the whole group, and a run then saves its state. Without a trap this shell ends at once, and the
  # container with it. The exit code stays that of the command.
  trap : TERM INT USR1
  "$@"
  exit
fi
jupyter_port=${JUPYTER_PORT:-8888}
if [ "$jupyter_port" -eq 0 ]; then wait; exit; fi
token=${JUPYTER_TOKEN:-${JUPYTER_PASSWORD:-${OPEN_BUTTON_TOKEN:-}}}
if [ -z "$token" ]; then
  token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  say "JupyterLab's token: $token"
fi
[[ $token =~ ^[A-Za-z0-9._~+/=-]+$ ]] || die "JUPYTER_TOKEN: holds other characters than letters, digits and . _ ~ + / = -"
say "JupyterLab on port $jupyter_port"
# The token goes by a file of this user's, since other processes see each other's words.
mkdir -p "$JUPYTER_CONFIG_DIR"
printf '{"IdentityProvider": {"token": "%s"}}\n' "$token" >"$JUPYTER_CONFIG_DIR/jupyter_server_config.json"
root=()
[ "$uid" -ne 0 ] || root=(--allow-root)
jupyter lab --no-browser --ip=0.0.0.0 --port="$jupyter_port" "${root[@]}" --ServerApp.root_dir="$workspace" &
server=$!
# JupyterLab ends its kernels first. A program in the background ignores SIGINT, so Ctrl-C becomes a SIGTERM.
trap : TERM
trap 'kill -TERM "$server" 2>/dev/null || true' INT
code=0
wait "$server" || code=$?
# A trapped signal ends `wait` ahead of JupyterLab.
while kill -0 "$server" 2>/dev/null; do
  code=0
  wait "$server" || code=$?
done
exit "$code"
