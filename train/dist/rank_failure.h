// Why a rank ended, as the others learn of it: a failure that no restart mends must end all of them with its
// code, and not with that of a lost rank, which is retried.
#pragma once

#include <optional>
#include <string>

#include "model/base/error.h"
#include "model/base/json.h"

namespace sdtune::train {

inline constexpr const char* kFailedKey = "failed";  // of the store: the text of the first failure
inline constexpr const char* kLostKey = "lost";      // of the store: the ranks that one has found lost

struct RankFailure {
  ExitCode code = ExitCode::kBug;
  std::string who;   // "rank 2 (host)"
  std::string line;  // of its error

  std::string text() const {
    return Json{static_cast<int>(code), who, line}.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  static RankFailure parse(const std::string& text) {
    const Json json = Json::parse(text);
    return {static_cast<ExitCode>(json.at(0).get<int>()), json.at(1), json.at(2)};
  }

  // On the ranks that did not fail themselves.
  Error error() const { return Error(code, who, "failed: " + line); }
};

// Whether the others should hear of it: a lost peer they find themselves, and it is retried.
inline bool ends_all_ranks(const Error& error) {
  return error.code() != ExitCode::kPeerLost;
}

}  // namespace sdtune::train
