// One file of a hub into the cache, whole or resumable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "app/hub/cache_folder.h"
#include "app/hub/hub_repository.h"

namespace sdtune::app {

// Called now and then with the bytes that are there.
using DownloadListener = std::function<void(std::uint64_t bytes)>;

// Brings the file's content to blobs/HASH, unless it is there in its size. What comes is written to
// blobs/HASH.incomplete and stays there when the connection or the process ends; the next call goes on behind it. The
// name is taken once size and hash are right. Tries again as long as bytes come, and otherwise as often as the client's
// settings say. Returns whether anything was downloaded. Throws NetworkError; ConfigError as HubClient; WeightError
// where the content has another hash (nothing of it is kept); StorageError where the disk is full, before the download
// where that is known.
bool download_blob(HubClient& client, const HubRepository& repository, const std::string& file, const HubFile& expected,
                   const CacheFolder& cache, const DownloadListener& listener);

}  // namespace sdtune::app
