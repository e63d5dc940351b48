// The environments of other launchers in torchrun's names.
#pragma once

#include "train/dist/rank_env.h"

namespace sdtune::train {

// Reads as `read` does, and where neither RANK nor WORLD_SIZE is set also RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT from what else started this process, the first that is there:
// 1. mpirun, as `accelerate launch` uses it on CPUs: OMPI_COMM_WORLD_*, PMI_* with MPI_LOCALRANKID, MV2_COMM_WORLD_*;
//    without a local rank, or with PMI_LOCAL_RANK, only where SLURM's do not say the same rank, since srun with
//    --mpi=pmi2 or Cray's library sets PMI_* too;
// 2. srun: SLURM_PROCID and the others, inside a job step (SLURM_STEP_ID) alone, since SLURM sets them in a batch
//    script too, which is no rank. The port is 15000 + (job id + 997 * step id) % 10000: steps of a job may run at the
//    same time on one node.
// A MASTER_ADDR or MASTER_PORT that is set wins over SLURM's. Throws ConfigError where RANK and another launcher's rank
// contradict each other: as many ranks, and another number for this one.
EnvironmentReader with_other_launchers(const EnvironmentReader& read);

}  // namespace sdtune::train
