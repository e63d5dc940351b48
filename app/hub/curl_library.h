// libcurl's functions, found when the first connection is made: the program starts without it, and on a machine that
// has it the machine's own certificates are used.
#pragma once

#include <curl/curl.h>

namespace sdtune::app {

struct CurlLibrary {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) init = nullptr;
  decltype(&curl_easy_cleanup) cleanup = nullptr;
  decltype(&curl_easy_reset) reset = nullptr;
  decltype(&curl_easy_setopt) setopt = nullptr;
  decltype(&curl_easy_perform) perform = nullptr;
  decltype(&curl_easy_strerror) strerror = nullptr;
  decltype(&curl_slist_append) append = nullptr;
  decltype(&curl_slist_free_all) free_all = nullptr;
};

// Opened once a process. Throws ConfigError saying what to install where it is not there.
const CurlLibrary& curl_library();

}  // namespace sdtune::app
