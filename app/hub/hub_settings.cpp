#include "app/hub/hub_settings.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "app/hub/url.h"
#include "model/base/environment.h"
#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

bool is_true(std::string value) {
  std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::toupper(c); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

void refuse_offline() {
  for (const char* name : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}) {
    if (is_true(environment_variable(name)))
      throw ConfigError(name, "is set: no connection is opened", "unset it for this command");
  }
}

std::string without_spaces(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
}

// Where `hf auth login` writes it.
fs::path token_file() {
  if (const std::string path = path_variable("HF_TOKEN_PATH"); !path.empty()) return path;
  if (const std::string home = path_variable("HF_HOME"); !home.empty()) return fs::path(home) / "token";
  const std::string cache = path_variable("XDG_CACHE_HOME");
  return (cache.empty() ? fs::path(home_folder()) / ".cache" : fs::path(cache)) / "huggingface" / "token";
}

std::string read_token() {
  std::string token, where;
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {  // its name now, and its former one
    if (!token.empty()) break;
    where = name;
    token = without_spaces(environment_variable(name));
  }
  if (token.empty() && is_file(token_file())) {
    where = token_file().string();
    token = without_spaces(read_file(where, 4096));
  }
  // It becomes a line of a request.
  const bool plain = std::all_of(token.begin(), token.end(), [](unsigned char c) { return c > 32 && c < 127; });
  if (!plain) throw ConfigError(where, "is no token: it holds a space or control character");
  return token;
}

}  // namespace

HubSettings read_hub_settings(std::int64_t retries) {
  refuse_offline();
  HubSettings settings{.endpoint = environment_variable("HF_ENDPOINT"), .token = read_token(), .retries = retries};
  if (settings.endpoint.empty()) settings.endpoint = "https://huggingface.co";
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  parse_url(settings.endpoint);
  return settings;
}

}  // namespace sdtune::app
