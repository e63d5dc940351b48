#include "train/dist/dist_options.h"

#include <utility>

namespace sdtune::train {

namespace {

FieldInfo seconds_field(std::string name, std::string help) {
  return {.name = std::move(name), .help = std::move(help), .group = "Ranks", .unit = "s", .min = 1, .max = 86400};
}

}  // namespace

FieldList DistOptions::fields() {
  FieldList list;
  list.push_back({seconds_field("peer_timeout", "How long a rank waits for the others before it gives up (exit 138)."),
                  &peer_timeout});
  list.push_back({seconds_field("start_timeout", "How long a rank waits for the others to start."), &start_timeout});
  return list;
}

}  // namespace sdtune::train
