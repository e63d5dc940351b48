// Everybody's JSON, by rank.
#pragma once

#include <string>
#include <vector>

#include "model/base/json.h"
#include "train/dist/process_group.h"

namespace sdtune::train {

// In CBOR, which passes names of files that are not UTF-8 as they are.
inline std::vector<Json> gather_json(ProcessGroup& group, const Json& own) {
  const std::vector<std::uint8_t> bytes = Json::to_cbor(own);
  std::vector<Json> of_ranks;
  for (const std::string& text : group.gather_text({bytes.begin(), bytes.end()})) {
    of_ranks.push_back(Json::from_cbor(text));
  }
  return of_ranks;
}

}  // namespace sdtune::train
