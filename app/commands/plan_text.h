// A plan as people read it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/plan/rental.h"
#include "train/plan/timing_run.h"

namespace sdtune::app {

std::string plan_text(const train::RunPlan& plan, const std::vector<train::Rental>& rentals,
                      const std::string& currency, const std::optional<train::ProbedTimes>& probed);

}  // namespace sdtune::app
