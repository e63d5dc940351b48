// What one rank starts from. Every rank trains its own copy of the model, and nothing in training would show that two
// of them began differently.
#pragma once

#include <map>
#include <string>

#include "model/base/json.h"

namespace sdtune::train {

struct Replica {
  std::map<std::string, std::string> base;           // file -> hash
  std::map<std::string, std::string> images;         // as fingerprint_images
  std::map<std::string, std::string> held_out = {};  // photos of validation_data_dir, likewise

  bool operator==(const Replica&) const = default;
  Json to_json() const;
  static Replica from_json(const Json& json);
};

// What `other` has otherwise than `first`, with counts and the first few names: "another base (1 of 12 files:
// unet/config.json), other photos (2 of 5: a.png, b.png)"; empty where they are equal.
std::string replica_difference(const Replica& first, const Replica& other);

}  // namespace sdtune::train
