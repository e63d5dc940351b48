// The checks of options for a rented machine: its price, and who says that it goes.
#include "train/preflight/preflight_checks.h"
#include "train/rental/preemption_notice.h"

namespace sdtune::train {

namespace {

// EC2 lets its answer to the question for a token go over one hop where nothing else is set, and a container's bridge
// is the second.
const char* hint_of_cloud(const std::string& cloud) {
  if (cloud != "ec2") return "is this machine of that cloud?";
  return "is this machine of that cloud? In a container it answers with --network host, or where the machine's hop "
         "limit is 2 (aws ec2 modify-instance-metadata-options)";
}

}  // namespace

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
                        hint_of_cloud(options.preemption)});
  } catch (const ConfigError& error) {
    append(problems, error.problems());
  }
}

}  // namespace sdtune::train
