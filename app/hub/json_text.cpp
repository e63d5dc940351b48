#include "app/hub/json_text.h"

namespace sdtune::app {

std::string json_text(const Json& object, const std::string& key) {
  const bool is_there = object.is_object() && object.contains(key) && object[key].is_string();
  return is_there ? object[key].get<std::string>() : "";
}

}  // namespace sdtune::app
