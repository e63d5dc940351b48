// Which hub, with whose token.
#pragma once

#include <cstdint>
#include <string>

namespace sdtune::app {

struct HubSettings {
  std::string endpoint;  // without a slash at its end
  std::string token;     // empty: none
  std::int64_t retries = 5;
};

// HF_ENDPOINT, else https://huggingface.co; HF_TOKEN, else the file that `hf auth login` writes (HF_TOKEN_PATH,
// HF_HOME/token). Throws ConfigError where HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set, and for an endpoint that is
// no web address.
HubSettings read_hub_settings(std::int64_t retries);

// What a request is about, for errors.
struct HubSubject {
  std::string id;             // org/name
  std::string revision = {};  // empty: the request names none
  std::string file = {};
};

}  // namespace sdtune::app
