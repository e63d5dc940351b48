// Large files to a hub: git-lfs's batch request, with the transfers "basic" and the hub's "multipart".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/hub/hub_client.h"
#include "app/hub/push_files.h"

namespace sdtune::app {

struct LfsFile {
  std::string path;  // in the repository
  std::filesystem::path source;
  std::string oid;  // its SHA-256
  std::uint64_t size = 0;
};

// Hashes it. Throws DataError where it cannot be read.
LfsFile lfs_file(const PushFile& file);

// Uploads those that the hub does not have. Throws what HubClient throws; NetworkError for an answer that is not the
// protocol's; ConfigError for a file that the hub refuses.
void upload_lfs_files(HubClient& client, const std::vector<LfsFile>& files, const HubSubject& subject);

}  // namespace sdtune::app
