#include "train/run/described_failure.h"

#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "model/core/hardware_fault.h"
#include "model/core/out_of_memory.h"
#include "train/run/micro_batch.h"

namespace sdtune::train {

void rethrow_torch_error(const c10::Error& error, const TrainConfig& config) {
  if (const std::optional<Problem> fault = model::hardware_fault(error)) throw PeerLostError(std::vector{*fault});
  if (!model::is_out_of_memory(error)) throw;
  const std::string text = error.what_without_backtrace();
  throw OutOfMemoryError("memory", text.substr(0, text.find('\n')), memory_hint(config));
}

Error described(const std::exception& error, const TrainConfig& config) {
  if (const auto* no_memory = dynamic_cast<const std::bad_alloc*>(&error)) {
    return OutOfMemoryError("memory", model::words_of(*no_memory), memory_hint(config));
  }
  if (const auto* of_disk = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return StorageError(of_disk->path1().string(), of_disk->code().message());
  }
  if (const std::optional<Problem> fault = model::hardware_fault(error)) return PeerLostError(std::vector{*fault});
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  return Error(ExitCode::kBug, "internal error", text.substr(0, text.find('\n')));
}

}  // namespace sdtune::train
