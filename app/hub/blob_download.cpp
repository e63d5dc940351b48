#include "app/hub/blob_download.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "app/hub/content_hash.h"
#include "app/hub/file_lock.h"
#include "app/hub/network_error.h"
#include "model/files/file_system.h"
#include "model/files/growing_file.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFullDisk = "free some space, or choose another --cache-dir; the part that came is kept";

std::uint64_t size_of(const fs::path& path) {
  std::error_code error;
  const std::uint64_t size = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
  return error ? 0 : size;
}

// The part of a file that is there, and what is added to it.
class PartialFile {
 public:
  PartialFile(fs::path path, const HubFile& expected) : path_(std::move(path)), expected_(expected) {
    if (size_of(path_) > expected_.size) real_file_system().unlink(path_);
    open();
  }

  std::uint64_t bytes() const { return bytes_; }
  bool whole() const { return bytes_ == expected_.size; }

  void write(std::span<const std::byte> bytes) {
    if (bytes.size() > expected_.size - bytes_) {
      throw NetworkError(path_.string(),
                         fmt::format("the server sends more than the {} bytes that it announced", expected_.size));
    }
    file_->write(bytes);
    hash_->update(bytes);
    bytes_ += bytes.size();
  }

  void start_again() {
    file_.reset();
    real_file_system().unlink(path_);
    open();
  }

  // Ends the file; returns its hash.
  std::string finish() {
    file_->sync();
    file_->close();
    return hash_->hex_digest();
  }

 private:
  // Hashes what is there, so that the rest can be added.
  void open() {
    hash_ = std::make_unique<ContentHash>(expected_.hash, expected_.size);
    bytes_ = 0;
    if (size_of(path_) > 0) {
      std::ifstream stream(path_, std::ios::binary);
      std::vector<char> buffer(std::size_t{1} << 20);
      while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || stream.gcount() > 0) {
        const auto count = static_cast<std::size_t>(stream.gcount());
        hash_->update(std::as_bytes(std::span(buffer.data(), count)));
        bytes_ += count;
      }
      if (stream.bad()) throw StorageError(path_.string(), "cannot be read");
    }
    file_ = append_to_file(path_);
  }

  fs::path path_;
  HubFile expected_;
  std::unique_ptr<OutputFile> file_;
  std::unique_ptr<ContentHash> hash_;
  std::uint64_t bytes_ = 0;
};

void check_space(const fs::path& path, std::uint64_t needed) {
  std::error_code error;
  const fs::space_info space = fs::space(path.parent_path(), error);
  if (error || space.available >= needed) return;
  throw StorageError(path.parent_path().string(),
                     fmt::format("the disk has {} bytes left, and {} more are to come", space.available, needed),
                     kFullDisk);
}

// One try: the rest of the file, or all of it where the server does not send parts.
void receive(HubClient& client, const HubRepository& repository, const std::string& file, PartialFile& partial,
             const DownloadListener& listener) {
  bool first = true;
  const std::uint64_t offset = partial.bytes();
  const auto take = [&](const HttpResponse& head, std::span<const std::byte> bytes) {
    const std::string range = fmt::format("bytes {}-", offset);
    const bool continues = head.status == 206 && head.header("content-range").starts_with(range);
    if (std::exchange(first, false) && offset > 0 && !continues) partial.start_again();
    if (head.status == 206 && !continues)
      throw NetworkError(head.url.empty() ? file : head.url, "sends another part than asked for");
    partial.write(bytes);
    listener(partial.bytes());
  };
  const HubSubject subject{.id = repository.id, .revision = repository.revision, .file = file};
  const HttpResponse head = client.download(download_path(repository, file), offset, subject, take);
  if (head.status == 416) partial.start_again();
  if (!partial.whole()) {
    throw NetworkError(repository.id + ": " + file, fmt::format("the download ended after {} bytes", partial.bytes()),
                       "the next call goes on there");
  }
}

// Until it is whole. A try that brought bytes does not count.
void receive_all(HubClient& client, const HubRepository& repository, const std::string& file, PartialFile& partial,
                 const DownloadListener& listener) {
  std::int64_t failures = 0;
  while (!partial.whole()) {
    const std::uint64_t before = partial.bytes();
    try {
      receive(client, repository, file, partial, listener);
    } catch (const NetworkError& error) {
      failures = partial.bytes() > before ? 1 : failures + 1;
      if (failures > client.settings().retries) {
        throw NetworkError(repository.id + ": " + file, error.problems().front().line(), "the next call goes on there");
      }
      HubClient::wait_before_retry(failures, error.wait());
    }
  }
}

}  // namespace

bool download_blob(HubClient& client, const HubRepository& repository, const std::string& file, const HubFile& expected,
                   const CacheFolder& cache, const DownloadListener& listener) {
  const fs::path blob = cache.blob(expected.hash), incomplete = blob.string() + ".incomplete";
  const FileLock lock(cache.lock(expected.hash), "another process downloads this file");
  if (is_file(blob) && size_of(blob) == expected.size) return false;
  try {
    const std::uint64_t there = size_of(incomplete);
    check_space(blob, expected.size - std::min(there, expected.size));
    PartialFile partial(incomplete, expected);
    receive_all(client, repository, file, partial, listener);
    std::string hash = partial.finish();
    if (hash != expected.hash && there > 0) {  // an older part of other content: all of it anew
      partial.start_again();
      receive_all(client, repository, file, partial, listener);
      hash = partial.finish();
    }
    if (hash != expected.hash) {
      real_file_system().unlink(incomplete);
      throw WeightError(repository.id + ": " + file,
                        "has another hash than the hub says (got " + hash + "; allowed: " + expected.hash + ")",
                        "what came is removed; is a proxy in between?");
    }
    real_file_system().rename(incomplete, blob);
    real_file_system().sync_directory(blob.parent_path());
  } catch (const StorageError& error) {
    const Problem& problem = error.problems().front();
    throw StorageError(problem.where, problem.what, problem.hint.empty() ? "" : kFullDisk);
  }
  return true;
}

}  // namespace sdtune::app
