#include "train/portrait/renderer/portrait_set.h"

#include <stdexcept>
#include <string>

namespace sdtune::train::portrait {
namespace {

std::uint64_t first_seed(PortraitSet set) {
  switch (set) {
    case PortraitSet::kTraining:
      return kTrainingSeeds;
    case PortraitSet::kValidation:
      return kValidationSeeds;
    case PortraitSet::kReserved:
      return kReservedSeeds;
  }
  throw std::invalid_argument("no such set of people");
}

}  // namespace

std::uint64_t people_in(PortraitSet set) {
  switch (set) {
    case PortraitSet::kTraining:
      return kValidationSeeds - kTrainingSeeds;
    case PortraitSet::kValidation:
      return kReservedSeeds - kValidationSeeds;
    case PortraitSet::kReserved:
      return kReservedCount;
  }
  throw std::invalid_argument("no such set of people");
}

ImageSeeds image_seeds(PortraitSet set, std::uint64_t person, std::uint64_t view) {
  if (person >= people_in(set)) throw std::invalid_argument("no person " + std::to_string(person) + " in this set");
  if (view >= kViewsOfPerson) throw std::invalid_argument("no view " + std::to_string(view) + " of a person");
  const std::uint64_t seed = first_seed(set) + person;
  return {seed, seed * kViewsOfPerson + view};
}

}  // namespace sdtune::train::portrait
