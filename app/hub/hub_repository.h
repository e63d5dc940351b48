// A model on a hub: what it holds, at one commit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/hub/hub_client.h"

namespace sdtune::app {

struct HubRepository {
  std::string id;        // org/name
  std::string revision;  // as asked: a branch, tag or commit
  std::string commit;    // 40 hexadecimal digits
  std::string licence;   // as its card says; empty: it does not
  std::vector<std::string> files;
};

struct HubFile {
  std::string hash;  // see content_hash.h; the name of its blob in the cache
  std::uint64_t size = 0;
};

// Throws ConfigError and NetworkError as HubClient does, and WeightError for an answer that names no commit, or a file
// outside the model's folder.
HubRepository read_hub_repository(HubClient& client, const std::string& id, const std::string& revision);

// The same errors; WeightError for a file without size or hash.
HubFile read_hub_file(HubClient& client, const HubRepository& repository, const std::string& file);

// The path of a file's content below the endpoint.
std::string download_path(const HubRepository& repository, const std::string& file);

// Whether a path stays below its folder: relative, without "..", empty parts or backslashes.
bool is_inner_path(const std::string& path);

}  // namespace sdtune::app
