// HTTP of a cloud's metadata service: plain, local to the machine, answered in milliseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sdtune::train {

struct MetadataAddress {
  std::string host;
  std::string port;  // "80"
};

// "HOST" or "HOST:PORT", an IPv6 address in brackets; empty: 169.254.169.254, where the clouds have it. Throws
// ConfigError naming preemption_address.
MetadataAddress parse_metadata_address(const std::string& text);

struct MetadataRequest {
  std::string method = "GET";
  std::string path;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

struct MetadataAnswer {
  int status = 0;  // 200, ...
  std::string body;
};

// Sends the request and reads the answer, of at most 1 MiB. Gives up after `seconds`, and soon once `cancelled` is set.
// Uses no proxy. Throws std::runtime_error saying why there is no answer.
MetadataAnswer ask_metadata(const MetadataAddress& address, const MetadataRequest& request, double seconds,
                            const std::atomic<bool>& cancelled);

}  // namespace sdtune::train
