// What the hub's protocol needs of URLs.
#pragma once

#include <string>

namespace sdtune::app {

struct Url {
  std::string scheme;     // http or https
  std::string authority;  // host, or host:port
  std::string path;       // with its query; begins with '/'

  // Whether both lead to the same server: only there may a token go.
  bool same_origin(const Url& other) const { return scheme == other.scheme && authority == other.authority; }
  std::string text() const { return scheme + "://" + authority + path; }
};

// Throws ConfigError for another scheme, for a name and password in it, and for control characters.
Url parse_url(const std::string& text);

// Where a Location header leads, whole or relative to the URL that was asked. The same errors.
Url resolve_location(const Url& asked, const std::string& location);

// Everything but letters, digits and -._~ as %XX; '/' too unless it is kept.
std::string percent_encoded(const std::string& text, bool keep_slashes);

}  // namespace sdtune::app
