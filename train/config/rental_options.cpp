#include "train/config/rental_options.h"

namespace sdtune::train {

TrainFieldList RentalOptions::fields() {
  TrainFieldList list;
  TrainOptionGroup group(list, "Rented machines");
  group
      .add("max_hours", &max_hours, Resume::kMayChange,
           "Time that all attempts of the run may take: at its end the run saves a checkpoint, exports the model and "
           "ends with exit code 0; unset: unlimited.")
      .unit("hours")
      .above(0);
  group
      .add("max_cost", &max_cost, Resume::kMayChange,
           "The same for what the machine costs, in the currency of price_per_hour, which it needs; unset: unlimited.")
      .above(0);
  group
      .add("on_finish", &on_finish, Resume::kMayChange,
           "Command for /bin/sh at every end of the run, good or bad, with SDTUNE_EXIT_CODE, SDTUNE_CAUSE and "
           "SDTUNE_RUN "
           "(the run folder) in its environment; on the first rank alone; empty: none.")
      .placeholder("CMD");
  group
      .add("preemption", &preemption, Resume::kMayChange,
           "Cloud whose metadata service is asked whether it takes the machine away: then the run saves a checkpoint "
           "and "
           "ends with exit code 143.")
      .choices({"none", "ec2", "google", "azure"});
  group
      .add("preemption_address", &preemption_address, Resume::kMayChange,
           "Address of the metadata service; empty: 169.254.169.254, where the clouds have it.")
      .placeholder("HOST[:PORT]");
  group
      .add("notify", &notify, Resume::kMayChange,
           "Address of a webhook (Slack, Discord or your own) that gets a POST with JSON at start, end and failure of "
           "the run, from the first rank alone; empty: none.")
      .placeholder("URL")
      .secret();
  return list;
}

std::vector<Problem> rental_problems(const RentalOptions& options, std::optional<double> price_per_hour) {
  std::vector<Problem> problems;
  if (options.max_cost && price_per_hour.value_or(0) <= 0) {
    problems.push_back({"max_cost", "needs the price of the machine, and price_per_hour is not given or 0",
                        "--price-per-hour, in the same currency"});
  }
  return problems;
}

}  // namespace sdtune::train
