#include "train/run/run.h"

namespace sdtune::train {

void tell_phase(const std::vector<Observer*>& observers, const std::string& name, std::int64_t done,
                std::int64_t total) {
  for (Observer* observer : observers) observer->on_phase(name, done, total);
}

}  // namespace sdtune::train
