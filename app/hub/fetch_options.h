// The options of `sdtune fetch`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/options/field.h"

namespace sdtune::app {

struct FetchOptions {
  std::vector<std::string> files;
  std::string revision = "main";
  std::string variant;
  std::vector<std::string> without;
  std::string cache_dir;
  std::int64_t retries = 5;
  bool json = false;

  FieldList fields();
};

}  // namespace sdtune::app
