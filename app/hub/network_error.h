// A connection that failed for a reason that may pass.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "model/base/error.h"

namespace sdtune::app {

// The hub does not answer, ends early or is overloaded, also after the retries: exit code 138, which may be retried.
// What another try cannot mend (no such model, no access, a wrong hash) is a ConfigError or WeightError.
class NetworkError : public sdtune::detail::ErrorOf<ExitCode::kPeerLost> {
 public:
  using ErrorOf::ErrorOf;
  NetworkError(std::string where, std::string what, std::string hint, std::int64_t wait)
      : ErrorOf(std::move(where), std::move(what), std::move(hint)), wait_(wait) {}

  // Seconds that the server asked for before the next try, or 0.
  std::int64_t wait() const { return wait_; }

 private:
  std::int64_t wait_ = 0;
};

}  // namespace sdtune::app
