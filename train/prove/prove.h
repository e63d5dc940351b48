// `sdtune prove`: what sdtune promises, tried on the device at hand, in parts that can be resumed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/base/stop_flag.h"
#include "train/config/train_config.h"
#include "train/prove/prove_report.h"

namespace sdtune::train {

struct ProveRequest {
  TrainConfig config;  // base, photos and device; the rest as the base's preset has it
  std::filesystem::path output;
  std::vector<std::string> parts;  // empty: all
  std::string against;             // "diffusers": also the part of that name
  std::optional<double> minutes;   // of this call; unset: until all is done
  std::int64_t steps = 60;         // of DreamBooth
  std::filesystem::path program;   // sdtune itself, which the parts run
  Json machine;                    // for the report
};

// In the order in which they are done.
std::vector<std::string> prove_parts();

struct ProveListener {
  std::function<void(const std::string& part)> begin;
  std::function<void(const PartResult& result, bool is_of_earlier_call)> end;
};

// Does the parts that are not done, and writes each result as soon as it is there, and the report. Parts left over when
// the time of the call is over, or `stop` asks, are unfinished; the next call with the same folder continues. Throws
// ConfigError and WeightError for what is wrong with the options, and where the folder holds the proof of another
// device, base, set of photos or version; StorageError where the disk is full, for a part's process too.
ProveReport prove(const ProveRequest& request, const ProveListener& listener, const StopFlag& stop);

}  // namespace sdtune::train
