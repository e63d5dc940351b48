#include "app/hub/curl_library.h"

#include <dlfcn.h>

#include <array>

#include "model/base/error.h"

namespace sdtune::app {
namespace {

// By which TLS library they use, the usual one first.
constexpr std::array kNames = {"libcurl.so.4", "libcurl-gnutls.so.4"};

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw ConfigError("libcurl", std::string("has no function ") + name);
}

// Never closed: it keeps threads and tables.
CurlLibrary open() {
  void* library = nullptr;
  for (const char* name : kNames) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    throw ConfigError("libcurl", "is not installed, and fetch and push need it",
                      "apt-get install libcurl4 ca-certificates");
  }
  CurlLibrary curl;
  find(library, "curl_global_init", curl.global_init);
  find(library, "curl_easy_init", curl.init);
  find(library, "curl_easy_cleanup", curl.cleanup);
  find(library, "curl_easy_reset", curl.reset);
  find(library, "curl_easy_setopt", curl.setopt);
  find(library, "curl_easy_perform", curl.perform);
  find(library, "curl_easy_strerror", curl.strerror);
  find(library, "curl_slist_append", curl.append);
  find(library, "curl_slist_free_all", curl.free_all);
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw ConfigError("libcurl", "cannot be initialized");
  return curl;
}

}  // namespace

const CurlLibrary& curl_library() {
  static const CurlLibrary curl = open();
  return curl;
}

}  // namespace sdtune::app
