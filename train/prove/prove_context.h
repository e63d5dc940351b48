// What every part of `sdtune prove` is given.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/base/stop_flag.h"
#include "train/config/train_config.h"
#include "train/prove/child_process.h"
#include "train/prove/part_result.h"
#include "train/prove/part_store.h"

namespace sdtune::train {

// So long may one process of a part take: renters of a machine by the call have ten minutes, and what is not over then
// is lost.
inline constexpr std::chrono::seconds kLongestPiece{480};

struct ProveContext {
  using Clock = std::chrono::steady_clock;

  std::filesystem::path program;  // sdtune itself
  const PartStore& store;
  TrainConfig config = {};  // base, photos, device; the rest as the base's preset has it
  bool is_cuda = false;
  std::string device = "cpu";                      // or cuda:N, also where the configuration says auto
  std::int64_t gpus = 0;                           // usable ones
  std::int64_t steps = 60;                         // of DreamBooth
  std::int64_t recorded_steps = 3;                 // of parity and ranks
  std::string against = {};                        // "diffusers" or ""
  std::string fault = {};                          // planted_fault()
  std::optional<Clock::time_point> deadline = {};  // of this call
  const StopFlag& stop;

  bool is_over() const { return stop.signal() != 0 || (deadline && Clock::now() >= *deadline); }
  // What a process may take now.
  std::chrono::duration<double> limit() const;
  std::filesystem::path work(const std::string& name) const { return store.work() / name; }
  // FILE.yaml in the work folder with every option; returns its path.
  std::filesystem::path write_config(const std::string& name, TrainConfig config) const;
  // `sdtune prove-piece --piece KIND --config FILE.yaml ...`; the log is NAME.log in the work folder.
  Child piece(const std::string& kind, const std::string& name, const std::filesystem::path& config,
              std::vector<std::string> more) const;
};

// Why processes did not end well, as the part's result: unfinished where this call's time was over, or skipped where
// memory ran out (also SIGKILL, which the kernel sends then) and `may_skip`, else failed with the last words of the
// log. Throws StorageError where storage failed (exit code 5): that is no fault of the device, and is not kept.
PartResult ended_badly(const ProveContext& context, const std::string& part, const ChildrenEnd& end,
                       const std::vector<Child>& children, bool may_skip = false);

// A training of the UNet in `mixed_precision` that records can be made of: no class images, no text encoder, plain loss
// and AdamW.
TrainConfig step_config(const ProveContext& context, const std::string& mixed_precision, const std::string& name);

// The run that DreamBooth is proved by, and that memory and time are planned for.
TrainConfig dreambooth_config(const ProveContext& context);

}  // namespace sdtune::train
