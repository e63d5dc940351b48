// Low-rank training: which matrices are trained, and what comes out. Everything else of a run is as for all weights.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/core/chunk_threads.h"
#include "model/core/random.h"
#include "model/lora/lora_layers.h"
#include "train/config/lora_options.h"
#include "train/parameters/trainable_parameters.h"

namespace sdtune::train {

inline constexpr const char* kTrainedLora = "trained";  // the name of the branches that a run trains

// Which samples the branches' dropout is drawn for: those of the micro-batch in the model, by chunk where it is
// computed in chunks; none outside training, where nothing is dropped. Shared by all branches.
class DropoutSamples {
 public:
  std::uint64_t seed = 0;

  void begin(std::int64_t chunks) { keys_.assign(static_cast<std::size_t>(chunks), {}); }
  void set(std::vector<model::SampleKey> keys) { keys_.at(chunk()) = std::move(keys); }
  void clear() { begin(1); }
  // Of the chunk that this thread computes.
  const std::vector<model::SampleKey>& keys() const { return keys_.at(chunk()); }

 private:
  static std::size_t chunk() { return static_cast<std::size_t>(model::current_chunk()); }
  std::vector<std::vector<model::SampleKey>> keys_{1};
};

// The layers that the options select among those that the loss depends on. Throws ConfigError naming each pattern that
// is no layer of the model, and when none is left.
std::vector<model::LoraLayer> selected_lora_layers(const model::ModelBundle& bundle, const LoraOptions& options,
                                                   bool train_text_encoder);

// Attaches a new branch to every layer that the options select, and returns the matrices as parameters, text encoders
// first: "unet.<path>.lora_A.weight" [r, in], uniform in +-1 / sqrt(inputs) as PEFT draws it (Kaiming with a =
// sqrt(5)), and ".lora_B.weight", zero, so that training starts from the base. Throws what selected_lora_layers
// throws.
std::vector<ModuleParameter> add_lora(const model::ModelBundle& bundle, const LoraOptions& options,
                                      bool train_text_encoder, std::uint64_t seed,
                                      const std::shared_ptr<const DropoutSamples>& samples);

}  // namespace sdtune::train
