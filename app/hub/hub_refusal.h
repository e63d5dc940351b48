// What a hub's refusals mean.
#pragma once

#include <cstdint>

#include "app/hub/http_client.h"
#include "app/hub/hub_settings.h"

namespace sdtune::app {

// Whether a later try may succeed: too many requests, a server's own fault.
bool may_pass(int status);

// Seconds that an answer asks to wait for before the next try (Retry-After), or 0.
std::int64_t wanted_wait(const HttpResponse& response);

// Throws what a status of 400 and above means: NetworkError where may_pass, else ConfigError.
[[noreturn]] void refuse_answer(const HttpResponse& response, const HubSubject& subject, const HubSettings& settings);

}  // namespace sdtune::app
