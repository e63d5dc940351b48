// The checks of options for a rented machine: its price, and who says that it goes.
#include "train/preflight/preflight_checks.h"
#include "train/rental/preemption_notice.h"

namespace sdtune::train {

void check_rental(const TrainConfig& config, std::vector<Problem>& problems) {
  const RentalOptions& options = config.rental;
  append(problems, rental_problems(options, config.observe.price_per_hour));
  try {
    const MetadataAddress address = parse_metadata_address(options.preemption_address);
    const std::optional<std::string> fault = preemption_fault(options.preemption, address);
    if (!fault) return;
    problems.push_back({"preemption",
                        "the metadata service of " + options.preemption + " at " + address.host + ":" + address.port +
                            " does not answer as it should: " + *fault,
                        "is this machine of that cloud?"});
  } catch (const ConfigError& error) {
    append(problems, error.problems());
  }
}

}  // namespace sdtune::train
