#!/usr/bin/env bash
# Trains on the GPUs of this machine with torchrun. Everything behind the script's name goes to `sdtune train`.
#
#   NPROC=2 scripts/launch/torchrun_one_node.sh --images me --base sd15
#
# torchrun ends with 1 whatever the ranks return, and retries every failure: `sdtune launch --nproc 2 -- train ...` does not.
set -euo pipefail
exec torchrun --standalone --nproc-per-node "${NPROC:-gpu}" --max-restarts 0 --no-python \
  "${SDTUNE:-sdtune}" train --resume-from-checkpoint auto "$@"
