#include "train/preflight/disk_space.h"

#include <filesystem>
#include <functional>
#include <numeric>
#include <system_error>
#include <vector>

#include "train/optim/state_size.h"
#include "train/parameters/lora_parameters.h"
#include "train/parameters/trainable_parameters.h"

namespace sdtune::train {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFloatBytes = 4;  // masters, averages and the result are float32
// A tensor's entry in the header of a safetensors file: its name, of 110 characters at most, and 70 besides.
constexpr std::int64_t kHeaderEntry = 256;
constexpr std::int64_t kEntriesInCheckpoint = 6;  // of a parameter: itself, its average, and prodigy's four states
constexpr std::int64_t kSmallFiles = std::int64_t{64} << 10;  // configs, manifest, note, state.json

using Shapes = std::vector<std::vector<std::int64_t>>;

Shapes trained_shapes(const TrainConfig& config, const model::ModelBundle& base) {
  const RunOptions& run = config.run;
  Shapes shapes;
  if (run.method == "lora") {
    for (const model::LoraLayer& entry : selected_lora_layers(base, config.lora, run.train_text_encoder)) {
      shapes.push_back(entry.layer->down_shape(config.lora.rank));
      shapes.push_back(entry.layer->up_shape(config.lora.rank));
    }
    return shapes;
  }
  for (const ModuleParameter& parameter : trainable_parameters(base, run.train_text_encoder, run.trainable_layers)) {
    shapes.push_back(parameter.weight.sizes().vec());
  }
  return shapes;
}

std::int64_t numbers_in(const Shapes& shapes) {
  std::int64_t count = 0;
  for (const std::vector<std::int64_t>& shape : shapes) {
    count += std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  return count;
}

std::int64_t size_of_files(const fs::path& folder) {
  std::int64_t bytes = 0;
  std::error_code status;
  for (fs::directory_iterator at(folder, status), end; !status && at != end; at.increment(status)) {
    std::error_code none;
    const std::uintmax_t size = at->file_size(none);
    if (!none) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

// The whole model in float32, whatever the base is stored in.
std::int64_t bundle_bytes(const model::ModelBundle& base) {
  std::size_t tensors =
      base.unet->parameters().size() + base.vae->parameters().size() + base.text_encoder->parameters().size();
  if (base.is_xl()) tensors += base.text_encoder_2->parameters().size();
  std::int64_t bytes = kFloatBytes * count_parameters(base) + kHeaderEntry * static_cast<std::int64_t>(tensors);
  if (!base.folder.empty()) {
    for (const char* tokenizer : {"tokenizer", "tokenizer_2"}) bytes += size_of_files(base.folder / tokenizer);
  }
  return bytes + kSmallFiles;
}

// Two files with the matrices, diffusers' and kohya's, which has a third tensor for the two of a layer.
std::int64_t lora_bytes(const Shapes& shapes) {
  const auto matrices = static_cast<std::int64_t>(shapes.size());
  return 2 * kFloatBytes * numbers_in(shapes) + (2 * matrices + matrices / 2) * (kHeaderEntry + kFloatBytes) +
         kSmallFiles;
}

}  // namespace

WrittenBytes written_bytes(const TrainConfig& config, const model::ModelBundle& base) {
  const Shapes shapes = trained_shapes(config, base);
  const auto tensors = static_cast<std::int64_t>(shapes.size());
  WrittenBytes bytes;
  for (const std::vector<std::int64_t>& shape : shapes) bytes.checkpoint += saved_bytes(config.optim, shape);
  bytes.checkpoint += kEntriesInCheckpoint * kHeaderEntry * tensors + kSmallFiles;
  if (config.identity.identity_steps && config.identity.keep_best) {
    bytes.best = 2 * (kFloatBytes * numbers_in(shapes) + kHeaderEntry * tensors + kSmallFiles);
  }
  bytes.model = config.run.method == "lora" ? lora_bytes(shapes) : bundle_bytes(base);
  return bytes;
}

}  // namespace sdtune::train
