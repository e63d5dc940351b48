// A plan as `sdtune plan --json` prints it and Python gets it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "train/plan/rental.h"
#include "train/plan/timing_run.h"

namespace sdtune::train {

// Bytes, seconds, floating-point operations; docs/plan.md names the keys.
Json plan_json(const RunPlan& plan, const std::vector<Rental>& rentals, const std::string& currency,
               const std::optional<ProbedTimes>& probed);

}  // namespace sdtune::train
