#include "app/hub/url.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "model/base/error.h"

namespace sdtune::app {

Url parse_url(const std::string& text) {
  const std::size_t colon = text.find("://");
  Url url;
  url.scheme = text.substr(0, colon == std::string::npos ? 0 : colon);
  if (url.scheme != "http" && url.scheme != "https") {
    throw ConfigError(text, "is no web address (allowed: http://..., https://...)");
  }
  const std::size_t path = text.find_first_of("/?#", colon + 3);
  url.authority = text.substr(colon + 3, path == std::string::npos ? path : path - colon - 3);
  std::transform(url.authority.begin(), url.authority.end(), url.authority.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  url.path = path == std::string::npos ? "/" : text.substr(path);
  if (url.path.front() != '/') url.path.insert(0, 1, '/');
  if (url.authority.empty()) throw ConfigError(text, "has no host");
  if (url.authority.find('@') != std::string::npos) {
    throw ConfigError(url.scheme + "://...", "has a name and password in it", "give a token with HF_TOKEN");
  }
  const bool printable = std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 32 && c != 127; });
  if (!printable) throw ConfigError(text, "has a space or control character");
  return url;
}

Url resolve_location(const Url& asked, const std::string& location) {
  if (location.starts_with("http://") || location.starts_with("https://")) return parse_url(location);
  if (location.starts_with("//")) return parse_url(asked.scheme + ":" + location);
  Url url = asked;
  if (location.starts_with('/')) {
    url.path = location;
  } else {
    const std::string path = asked.path.substr(0, asked.path.find_first_of("?#"));
    url.path = path.substr(0, path.rfind('/') + 1) + location;
  }
  return parse_url(url.text());
}

std::string percent_encoded(const std::string& text, bool keep_slashes) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char letter : text) {
    const auto c = static_cast<unsigned char>(letter);
    const bool plain = std::isalnum(c) != 0 || std::string_view("-._~").find(letter) != std::string_view::npos;
    if (plain || (keep_slashes && letter == '/')) {
      encoded += letter;
    } else {
      encoded += {'%', kDigits[c >> 4], kDigits[c & 15]};
    }
  }
  return encoded;
}

}  // namespace sdtune::app
