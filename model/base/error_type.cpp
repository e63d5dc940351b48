#include "model/base/error_type.h"

namespace sdtune {

const char* error_type(const Error& error) {
  if (dynamic_cast<const ConfigError*>(&error) != nullptr) return "ConfigError";
  if (dynamic_cast<const WeightError*>(&error) != nullptr) return "WeightError";
  if (dynamic_cast<const DataError*>(&error) != nullptr) return "DataError";
  if (dynamic_cast<const CheckpointError*>(&error) != nullptr) return "CheckpointError";
  if (dynamic_cast<const OutOfMemoryError*>(&error) != nullptr) return "OutOfMemoryError";
  if (dynamic_cast<const StorageError*>(&error) != nullptr) return "StorageError";
  if (dynamic_cast<const NonFiniteError*>(&error) != nullptr) return "NonFiniteError";
  if (dynamic_cast<const PeerLostError*>(&error) != nullptr) return "PeerLostError";
  return "Error";
}

}  // namespace sdtune
