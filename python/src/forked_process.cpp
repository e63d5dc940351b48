#include "python/src/forked_process.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>

namespace sdtune::python {

void require_unforked_process() {
  static std::atomic<pid_t> computing = 0;  // the process that computed first; a fork copies it
  const pid_t own = getpid();
  pid_t first = 0;
  if (computing.compare_exchange_strong(first, own) || first == own || at::get_num_threads() == 1) return;
  throw std::runtime_error(
      "this process was forked from one in which sdtune had computed, and has none of its threads; "
      "start processes with multiprocessing.get_context(\"spawn\"), or before anything computes");
}

}  // namespace sdtune::python
