# Read by the scripts that build: how many compilations may run at the same time. In a container nproc counts the
# host's cores, and quota and memory are less. SDTUNE_SYSTEM_ROOT replaces / for tests.

# Bytes that a compilation with LibTorch's headers takes.
compile_bytes=3000000000

# group_folders CONTROLLER: the control groups that this process is in, its own and those above; "" for version 2. In a
# container the path may be the host's, of which only the root is there. As in model/machine/control_groups.cpp.
group_folders() {
  local folder=${SDTUNE_SYSTEM_ROOT:-}/sys/fs/cgroup${1:+/$1} group
  group=$(awk -F: -v name="$1" 'index("," $2 ",", "," name ",") { sub(/^[^:]*:[^:]*:/, ""); print; exit }' \
    "${SDTUNE_SYSTEM_ROOT:-}/proc/self/cgroup" 2>/dev/null) || group=""
  while [ -n "${group%/}" ]; do
    echo "$folder$group"
    group=${group%/*}
  done
  echo "$folder"
}

# number_in FILE [KEY]: its first number, or the one behind KEY; nothing where there is none ("max").
number_in() {
  awk -v key="${2:-}" 'key == "" { if ($1 ~ /^[0-9]+$/) print $1; exit } $1 == key { print $2; exit }' "$1" 2>/dev/null || true
}

# What quotas allow, whole cores.
quota_cores() {
  local folder quota period
  while read -r folder; do
    awk '$1 ~ /^[0-9]+$/ && $2 > 0 { print int($1 / $2) }' "$folder/cpu.max" 2>/dev/null || true
  done < <(group_folders "")
  while read -r folder; do
    quota=$(number_in "$folder/cpu.cfs_quota_us")  # -1: none
    period=$(number_in "$folder/cpu.cfs_period_us")
    [ -z "$quota" ] || [ "${period:-0}" -eq 0 ] || echo $((quota / period))
  done < <(group_folders cpu)
}

# bytes_left FOLDER LIMIT ANONYMOUS: pages of files can be given back, so only what is anonymous counts.
bytes_left() {
  local limit used
  limit=$(number_in "$1/$2")
  used=$(number_in "$1/memory.stat" "$3")
  [ -z "$limit" ] || echo $((limit - ${used:-0}))
}

# What the groups' limits and the machine leave.
free_bytes() {
  local folder kilobytes
  while read -r folder; do bytes_left "$folder" memory.max anon; done < <(group_folders "")
  while read -r folder; do bytes_left "$folder" memory.limit_in_bytes total_rss; done < <(group_folders memory)
  kilobytes=$(number_in "${SDTUNE_SYSTEM_ROOT:-}/proc/meminfo" MemAvailable:)
  [ -z "$kilobytes" ] || echo $((kilobytes * 1024))
}

# SDTUNE_JOBS where it is set.
compile_jobs() {
  if [ -n "${SDTUNE_JOBS:-}" ]; then echo "$SDTUNE_JOBS"; return; fi
  local jobs cores bytes
  jobs=$(nproc)
  for cores in $(quota_cores); do
    if [ "$cores" -lt "$jobs" ]; then jobs=$cores; fi
  done
  for bytes in $(free_bytes); do
    if [ $((bytes / compile_bytes)) -lt "$jobs" ]; then jobs=$((bytes / compile_bytes)); fi
  done
  echo $((jobs > 1 ? jobs : 1))
}
