#include "app/hub/hub_repository.h"

#include <algorithm>
#include <filesystem>

#include "app/hub/content_hash.h"
#include "app/hub/json_text.h"
#include "model/base/error.h"

namespace sdtune::app {
namespace {

// card: {license: other, license_name: x, license_link: y}, or a tag "license:x".
std::string licence_of(const Json& answer) {
  const Json card = answer.value("cardData", Json::object());
  std::string licence = json_text(card, "license");
  if (const std::string name = json_text(card, "license_name"); !name.empty()) licence = name;
  const Json tags = answer.value("tags", Json::array());
  for (std::size_t i = 0; licence.empty() && tags.is_array() && i < tags.size(); ++i) {
    constexpr std::string_view kTag = "license:";
    if (tags[i].is_string() && tags[i].get<std::string>().starts_with(kTag)) {
      licence = tags[i].get<std::string>().substr(kTag.size());
    }
  }
  const std::string link = json_text(card, "license_link");
  return link.empty() ? licence : licence + " (" + link + ")";
}

// "W/" stands before a hash of a proxy's making, quotes around every one.
std::string plain_etag(std::string etag) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  std::erase(etag, '"');
  return etag;
}

}  // namespace

bool is_inner_path(const std::string& path) {
  if (path.empty() || path.size() > 4096 || path.find('\\') != std::string::npos ||
      path.find('\0') != std::string::npos) {
    return false;
  }
  const std::filesystem::path parts(path);
  return !path.starts_with('/') && !path.ends_with('/') && path.find("//") == std::string::npos &&
         std::none_of(parts.begin(), parts.end(), [](const auto& part) { return part == ".." || part == "."; });
}

HubRepository read_hub_repository(HubClient& client, const std::string& id, const std::string& revision) {
  const std::string path = "/api/models/" + id + "/revision/" + percent_encoded(revision, false);
  const Json answer = client.get_json(path, {.id = id, .revision = revision});
  HubRepository repository{
      .id = id, .revision = revision, .commit = json_text(answer, "sha"), .licence = {}, .files = {}};
  const std::string where = client.settings().endpoint + path;
  if (repository.commit.size() != 40 || !is_content_hash(repository.commit)) {
    throw WeightError(where, "names no commit: is it a Hugging Face hub?", "HF_ENDPOINT says which hub is asked");
  }
  repository.licence = licence_of(answer);
  const Json files = answer.value("siblings", Json::array());
  for (const Json& file : files) {
    const std::string name = json_text(file, "rfilename");
    if (!is_inner_path(name)) throw WeightError(where, "lists a file outside the model's folder (got " + name + ")");
    repository.files.push_back(name);
  }
  std::sort(repository.files.begin(), repository.files.end());
  return repository;
}

std::string download_path(const HubRepository& repository, const std::string& file) {
  return "/" + repository.id + "/resolve/" + repository.commit + "/" + percent_encoded(file, true);
}

HubFile read_hub_file(HubClient& client, const HubRepository& repository, const std::string& file) {
  const HubSubject subject{.id = repository.id, .revision = repository.revision, .file = file};
  const HttpResponse head = client.head(download_path(repository, file), subject);
  const std::string linked = head.header("x-linked-etag"), linked_size = head.header("x-linked-size");
  const std::string hash = plain_etag(linked.empty() ? head.header("etag") : linked);
  const std::string size = linked_size.empty() ? head.header("content-length") : linked_size;
  const bool sized = !size.empty() && size.size() < 16 && size.find_first_not_of("0123456789") == std::string::npos;
  if (!is_content_hash(hash) || !sized || (head.status >= 300 && linked_size.empty())) {
    throw WeightError(repository.id + ": " + file,
                      "the hub gives no size and hash to check it with (got ETag " + hash + ")");
  }
  return {.hash = hash, .size = std::stoull(size)};
}

}  // namespace sdtune::app
