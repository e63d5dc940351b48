// Files to a model's repository on a hub, as one commit.
#pragma once

#include <string>
#include <vector>

#include "app/hub/hub_client.h"
#include "app/hub/push_files.h"

namespace sdtune::app {

// Makes the repository where there is none. Throws what HubClient throws; ConfigError where it should be private and is
// not, before anything was uploaded.
void require_repository(HubClient& client, const std::string& id, bool is_private);

struct UploadRequest {
  std::string id;        // org/name
  std::string revision;  // branch
  std::string message;
  std::vector<PushFile> files;
};

// Uploads the large files (git-lfs: in one request, or in parts where the hub wants that), those that the hub has
// already left out, then commits all. Returns the commit, or an empty text where the hub names none. Throws what
// HubClient throws, and StorageError where a file cannot be read; nothing is visible on the hub then.
std::string upload_files(HubClient& client, const UploadRequest& request);

}  // namespace sdtune::app
