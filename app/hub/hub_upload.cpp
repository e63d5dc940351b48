#include "app/hub/hub_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <set>

#include "app/hub/hub_words.h"
#include "app/hub/json_text.h"
#include "app/hub/lfs_upload.h"
#include "app/hub/network_error.h"
#include "model/base/printable.h"
#include "model/files/base64.h"
#include "model/files/file_system.h"

namespace sdtune::app {
namespace {

constexpr const char* kJsonType = "application/json";
constexpr std::size_t kSampleBytes = 512;  // by which the hub tells text from binary files

std::string start_of(const PushFile& file) {
  if (file.source.empty()) return file.text.substr(0, kSampleBytes);
  std::string bytes(std::min<std::uint64_t>(file.size, kSampleBytes), '\0');
  std::ifstream stream(file.source, std::ios::binary);
  if (!stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    throw StorageError(file.source.string(), "cannot be read");
  }
  return bytes;
}

struct Modes {
  std::set<std::string> large, ignored;  // paths
};

// Which files go through git-lfs, and which the repository's .gitignore leaves out.
Modes ask_modes(HubClient& client, const UploadRequest& request, const HubSubject& subject) {
  Json files = Json::array();
  for (const PushFile& file : request.files) {
    files.push_back({{"path", file.path}, {"sample", base64(start_of(file))}, {"size", file.size}});
  }
  const std::string path = "/api/models/" + request.id + "/preupload/" + percent_encoded(request.revision, false);
  const Json answer = client.post_json(path, Json{{"files", files}}.dump(), kJsonType, subject);
  Modes modes;
  if (!answer.is_object() || !answer.contains("files") || !answer["files"].is_array()) {
    throw NetworkError(client.settings().endpoint + path, "answers without a list of files");
  }
  for (const Json& file : answer["files"]) {
    if (json_text(file, "uploadMode") == "lfs") modes.large.insert(json_text(file, "path"));
    if (file.is_object() && file.value("shouldIgnore", false)) modes.ignored.insert(json_text(file, "path"));
  }
  return modes;
}

std::string line(const char* key, const Json& value) {
  return Json{{"key", key}, {"value", value}}.dump() + "\n";
}

}  // namespace

void require_repository(HubClient& client, const std::string& id, bool is_private) {
  const std::size_t slash = id.find('/');
  const Json body = {{"name", id.substr(slash + 1)},
                     {"organization", id.substr(0, slash)},
                     {"type", "model"},
                     {"private", is_private},
                     {"visibility", is_private ? "private" : "public"}};
  constexpr int kIsThere = 409;
  // A token that may write to this model alone may create none, also where the model is there.
  std::exception_ptr refusal;
  try {
    client.post_json("/api/repos/create", body.dump(), kJsonType, {.id = id}, kIsThere);
  } catch (const ConfigError&) {
    refusal = std::current_exception();
  }
  Json answer;
  try {
    answer = client.get_json("/api/models/" + id, {.id = id});
  } catch (const ConfigError&) {
    if (refusal) std::rethrow_exception(refusal);
    throw;
  }
  const bool is_hidden = answer.is_object() && answer.contains("private") && answer["private"] == true;
  if (is_private && !is_hidden) {
    throw ConfigError(id, "is public on " + client.settings().endpoint + ": nothing was uploaded",
                      "make it private there, or upload to everyone with --no-private");
  }
}

std::string upload_files(HubClient& client, const UploadRequest& request) {
  const HubSubject subject{.id = request.id, .revision = request.revision};
  const Modes modes = ask_modes(client, request, subject);
  std::string lines = line("header", {{"summary", request.message}, {"description", ""}});
  std::vector<LfsFile> large;
  for (const PushFile& file : request.files) {
    if (modes.ignored.contains(file.path)) {
      std::fprintf(stderr, "ignored  %s, by the repository's .gitignore\n", printable(file.path).c_str());
    } else if (modes.large.contains(file.path) && file.size > 0 && !file.source.empty()) {
      large.push_back(lfs_file(file));
      lines +=
          line("lfsFile", {{"path", file.path}, {"algo", "sha256"}, {"oid", large.back().oid}, {"size", file.size}});
    } else {
      const std::string content = file.source.empty() ? file.text : read_file(file.source);
      lines += line("file", {{"content", base64(content)}, {"path", file.path}, {"encoding", "base64"}});
    }
  }
  upload_lfs_files(client, large, subject);
  const std::string path = "/api/models/" + request.id + "/commit/" + percent_encoded(request.revision, false);
  return json_text(client.post_json(path, lines, "application/x-ndjson", subject), "commitOid");
}

}  // namespace sdtune::app
