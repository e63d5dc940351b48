#include "app/hub/lfs_upload.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "app/hub/hub_words.h"
#include "app/hub/json_text.h"
#include "app/hub/network_error.h"
#include "model/base/printable.h"
#include "model/files/sha256.h"

namespace sdtune::app {
namespace {

constexpr const char* kLfsType = "application/vnd.git-lfs+json";

[[noreturn]] void refuse_protocol(const HubSubject& subject, const std::string& what) {
  throw NetworkError(subject.id, "the hub's answer about large files " + what);
}

// A link may be relative to the hub.
std::string whole_url(const HubClient& client, const std::string& link) {
  return resolve_location(parse_url(client.settings().endpoint), link).text();
}

void put_whole(HubClient& client, const LfsFile& file, const Json& action, const HubSubject& subject) {
  HttpRequest request{.method = "PUT",
                      .url = whole_url(client, json_text(action, "href")),
                      .file = file.source,
                      .offset = 0,
                      .size = file.size};
  if (action.contains("header") && action["header"].is_object()) {
    for (const auto& [name, value] : action["header"].items()) {
      if (value.is_string()) request.headers.push_back(name + ": " + value.get<std::string>());
    }
  }
  client.send(request, subject);
}

// The header of the action holds chunk_size, and an address for each part under its number.
void put_parts(HubClient& client, const LfsFile& file, const Json& action, std::uint64_t part_size,
               const HubSubject& subject) {
  std::map<std::uint64_t, std::string> parts;
  for (const auto& [name, value] : action["header"].items()) {
    const bool is_number =
        !name.empty() && name.size() < 7 && name.find_first_not_of("0123456789") == std::string::npos;
    if (is_number && value.is_string()) parts[std::stoull(name)] = value.get<std::string>();
  }
  if (parts.size() != (file.size + part_size - 1) / part_size)
    refuse_protocol(subject, "has another number of parts than the file");
  Json done = Json::array();
  std::uint64_t offset = 0;
  for (const auto& [number, url] : parts) {
    const std::uint64_t size = std::min(part_size, file.size - offset);
    const HttpResponse response = client.send(
        {.method = "PUT", .url = whole_url(client, url), .file = file.source, .offset = offset, .size = size}, subject);
    if (response.header("etag").empty()) refuse_protocol(subject, "confirms a part without its ETag");
    done.push_back({{"partNumber", done.size() + 1}, {"etag", response.header("etag")}});
    offset += size;
  }
  client.send({.method = "POST",
               .url = whole_url(client, json_text(action, "href")),
               .headers = {std::string("Content-Type: ") + kLfsType, std::string("Accept: ") + kLfsType},
               .body = Json{{"oid", file.oid}, {"parts", done}}.dump()},
              subject);
}

std::uint64_t part_size_of(const Json& action) {
  if (!action.contains("header") || !action["header"].is_object() || !action["header"].contains("chunk_size")) return 0;
  const Json& size = action["header"]["chunk_size"];
  if (size.is_number_unsigned()) return size.get<std::uint64_t>();
  const std::string text = size.is_string() ? size.get<std::string>() : "";
  const bool is_number = !text.empty() && text.size() < 16 && text.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? std::stoull(text) : 0;
}

// Returns whether it was uploaded, or was there.
bool upload_file(HubClient& client, const LfsFile& file, const Json& answer, const HubSubject& subject) {
  if (answer.contains("error")) {
    throw ConfigError(file.path, "is refused by the hub: " + printable(json_text(answer["error"], "message")));
  }
  if (!answer.contains("actions") || !answer["actions"].is_object() || !answer["actions"].contains("upload"))
    return false;
  const Json& upload = answer["actions"]["upload"];
  if (json_text(upload, "href").empty()) refuse_protocol(subject, "names no address");
  const std::uint64_t part_size = part_size_of(upload);
  if (part_size > 0) {
    put_parts(client, file, upload, part_size, subject);
  } else {
    put_whole(client, file, upload, subject);
  }
  if (!answer["actions"].contains("verify")) return true;
  client.send({.method = "POST",
               .url = whole_url(client, json_text(answer["actions"]["verify"], "href")),
               .headers = {"Content-Type: application/json"},
               .body = Json{{"oid", file.oid}, {"size", file.size}}.dump()},
              subject);
  return true;
}

}  // namespace

LfsFile lfs_file(const PushFile& file) {
  return {.path = file.path, .source = file.source, .oid = sha256_of_file(file.source), .size = file.size};
}

void upload_lfs_files(HubClient& client, const std::vector<LfsFile>& files, const HubSubject& subject) {
  if (files.empty()) return;
  Json objects = Json::array();
  for (const LfsFile& file : files) objects.push_back({{"oid", file.oid}, {"size", file.size}});
  const Json body = {{"operation", "upload"},
                     {"transfers", {"basic", "multipart"}},
                     {"objects", objects},
                     {"hash_algo", "sha256"},
                     {"ref", {{"name", subject.revision}}}};
  const Json answer =
      client.post_json("/" + subject.id + ".git/info/lfs/objects/batch", body.dump(), kLfsType, subject);
  if (!answer.is_object() || !answer.contains("objects") || !answer["objects"].is_array())
    refuse_protocol(subject, "lists no objects");
  std::map<std::string, Json> by_hash;
  for (const Json& object : answer["objects"]) by_hash[json_text(object, "oid")] = object;
  for (const LfsFile& file : files) {
    const auto found = by_hash.find(file.oid);
    if (found == by_hash.end()) refuse_protocol(subject, "leaves out " + file.path);
    const bool is_new = upload_file(client, file, found->second, subject);
    std::fprintf(stderr, "%s%s, %s\n", is_new ? "uploaded " : "is there ", printable(file.path).c_str(),
                 size_text(file.size).c_str());
  }
}

}  // namespace sdtune::app
