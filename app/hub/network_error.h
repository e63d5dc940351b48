// A connection that failed for a reason that may pass.
#pragma once

#include "model/base/error.h"

namespace sdtune::app {

// The hub does not answer, ends early or is overloaded, also after the retries: exit code 138, which may be retried.
// What another try cannot mend (no such model, no access, a wrong hash) is a ConfigError or WeightError.
class NetworkError : public sdtune::detail::ErrorOf<ExitCode::kPeerLost> {
  using ErrorOf::ErrorOf;
};

}  // namespace sdtune::app
