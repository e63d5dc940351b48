#!/usr/bin/env bash
# Trains on two machines with torchrun: start it on both, with the same words and another NODE_RANK.
#
#   NODE_RANK=0 MASTER=node0:29500 NPROC=8 scripts/launch/torchrun_two_nodes.sh --images /shared/me --output /shared/run
#
# NODES is 2 unless set. With `sdtune launch`: --nproc 8 --nnodes 2 --node-rank 0 --rendezvous node0:29500 -- train ...
set -euo pipefail
: "${NODE_RANK:?0 on the first machine, 1 on the second}" "${MASTER:?HOST:PORT of the first machine}"
exec torchrun --nnodes "${NODES:-2}" --node-rank "$NODE_RANK" --nproc-per-node "${NPROC:-gpu}" \
  --master-addr "${MASTER%:*}" --master-port "${MASTER##*:}" --max-restarts 0 --no-python \
  "${SDTUNE:-sdtune}" train --resume-from-checkpoint auto "$@"
