#include "train/plan/model_trace.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string>
#include <utility>

#include "model/core/device.h"
#include "model/pipeline/prompt_encoding.h"
#include "model/schedule/noise_schedule.h"
#include "model/schedule/prediction.h"
#include "model/vae/vae_tiling.h"

namespace sdtune::train {
namespace {

// Ends a piece of the backward pass at each weight whose gradient is complete, and lets the gradient go.
class DropGradient final : public torch::autograd::PostAccumulateGradHook {
 public:
  DropGradient(torch::Tensor weight, std::string name, const MarkPiece& mark)
      : weight_(std::move(weight)), name_(std::move(name)), mark_(mark) {}
  void operator()(const torch::Tensor&) override {
    weight_.mutable_grad() = torch::Tensor();
    mark_("backward of " + name_);
  }

 private:
  torch::Tensor weight_;
  std::string name_;
  const MarkPiece& mark_;
};

// The hooks of one pass.
class GradientScope {
 public:
  GradientScope(const std::vector<ModuleParameter>& trained, const MarkPiece& mark) : trained_(trained) {
    for (const ModuleParameter& parameter : trained_) {
      torch::autograd::impl::set_post_acc_grad_hooks(
          parameter.weight, std::make_unique<DropGradient>(parameter.weight.detach(), parameter.name, mark));
    }
  }
  ~GradientScope() {
    for (const ModuleParameter& parameter : trained_) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameter.weight, nullptr);
    }
  }
  GradientScope(const GradientScope&) = delete;
  GradientScope& operator=(const GradientScope&) = delete;

 private:
  const std::vector<ModuleParameter>& trained_;
};

// Undrawn memory of another dtype: nothing is read, nothing is touched.
void retype(torch::nn::Module& module, torch::Dtype dtype) {
  if (dtype == torch::kFloat32) return;
  for (torch::Tensor& weight : module.parameters()) {
    weight.set_data(torch::empty_like(weight, weight.options().dtype(dtype), torch::MemoryFormat::Preserve));
  }
}

QuickPass training_pass(bool of_this_cpu) {
  return of_this_cpu ? QuickPass::kWatched : QuickPass::kSizes;
}

// Gaps are a part of the training's memory alone.
QuickPass other_pass(bool of_this_cpu) {
  return of_this_cpu ? QuickPass::kComputed : QuickPass::kSizes;
}

// Every level but the first halves the sides.
std::int64_t side_step(const model::ModelBundle& bundle) {
  return std::int64_t{1} << (bundle.unet->config().num_levels() - 1);
}

}  // namespace

ModelTrace::ModelTrace(const TrainConfig& config, model::ModelBundle bundle, bool of_this_cpu)
    : config_(config),
      bundle_(std::move(bundle)),
      dtype_(model::parse_dtype(config.precision.mixed_precision, "mixed_precision")),
      training_(side_step(bundle_), training_pass(of_this_cpu),
                [this](const PassShape& s) { return trace_training(s, false); }),
      recomputed_(side_step(bundle_), training_pass(of_this_cpu),
                  [this](const PassShape& s) { return trace_training(s, true); }),
      denoising_(side_step(bundle_), other_pass(of_this_cpu),
                 [this](const PassShape& s) { return trace_denoising(s); }),
      encoding_(side_step(bundle_), other_pass(of_this_cpu), [this](const PassShape& s) { return trace_encoding(s); }),
      decoding_(side_step(bundle_), other_pass(of_this_cpu), [this](const PassShape& s) { return trace_decoding(s); }) {
  // A CPU computes no float16: bfloat16 is as large.
  const torch::Dtype traced = dtype_ == torch::kFloat16 ? torch::kBFloat16 : dtype_;
  retype(*bundle_.unet, traced);
  retype(*bundle_.text_encoder, traced);
  if (bundle_.is_xl()) retype(*bundle_.text_encoder_2, traced);
  const bool text = config_.run.train_text_encoder;
  trained_ = config_.run.method == "lora" ? add_lora(bundle_, config_.lora, text, 0, dropout_)
                                          : trainable_parameters(bundle_, text, config_.run.trainable_layers);
  freeze_all_but(bundle_, trained_);
  const auto schedule = model::NoiseSchedule::from_config(bundle_.scheduler_config);
  loss_ = std::make_unique<DiffusionLoss>(schedule, model::prediction_type_of(bundle_.scheduler_config),
                                          config_.objective, 0);
}

void ModelTrace::recompute(bool on) {
  bundle_.unet->set_gradient_checkpointing(on);
  if (!config_.run.train_text_encoder) return;
  bundle_.text_encoder->set_gradient_checkpointing(on);
  if (bundle_.is_xl()) bundle_.text_encoder_2->set_gradient_checkpointing(on);
}

DiffusionBatch ModelTrace::batch_of(const PassShape& shape, const MarkPiece& mark) {
  const torch::TensorOptions options = bundle_.unet->parameters().front().options().requires_grad(false);
  DiffusionBatch batch;
  batch.latents =
      torch::zeros({shape.batch, bundle_.vae->config().latent_channels, shape.height, shape.width}, options);
  const std::vector<std::string> captions(static_cast<std::size_t>(shape.batch));
  mark("text_encoder");
  {
    const torch::AutoGradMode with_gradients(config_.run.train_text_encoder);
    const TextScope text;
    const model::PromptEmbeds embeds = model::encode_prompts(bundle_, model::tokenize_prompts(bundle_, captions));
    batch.context = embeds.context;
    if (bundle_.is_xl()) batch.added = {embeds.pooled, torch::zeros({shape.batch, 6}, options)};
  }
  if (config_.objective.masked_loss) {
    batch.mask = torch::ones({shape.batch, 1, shape.height, shape.width}, torch::kFloat32);
  }
  for (std::int64_t i = 0; i < shape.batch; ++i) batch.keys.push_back({0, static_cast<std::uint64_t>(i)});
  return batch;
}

void ModelTrace::run_training(const PassShape& shape, bool recomputed, const MarkPiece& mark) {
  recompute(recomputed);
  mark("latents");
  const DiffusionBatch batch = batch_of(shape, mark);
  dropout_->set(batch.keys);
  bundle_.unet->set_part_listener([&](const std::string& part) { mark("unet." + part); });
  const DiffusionDraws draws = loss_->draw(batch.keys, batch.latents.sizes(), torch::kCPU);
  const torch::Tensor loss = loss_->sample_losses(bundle_.unet, batch, draws).mean();
  bundle_.unet->set_part_listener({});
  mark("backward");
  loss.backward();
  dropout_->clear();
}

PassCost ModelTrace::trace_training(const PassShape& shape, bool recomputed) {
  return trace_pass([&](const MarkPiece& mark) {
    const GradientScope gradients(trained_, mark);
    run_training(shape, recomputed, mark);
  });
}

PassCost ModelTrace::trace_denoising(const PassShape& shape) {
  return trace_pass([&](const MarkPiece& mark) {
    const torch::NoGradGuard no_grad;
    mark("latents");
    const DiffusionBatch batch = batch_of(shape, mark);
    mark("unet");
    bundle_.unet->forward(batch.latents, torch::zeros({shape.batch}, torch::kInt64), batch.context, batch.added);
  });
}

// The memory of one tile; the operations of all, which overlap. Attention, within a tile, grows with their number.
PassCost ModelTrace::in_tiles(ScaledPass& pass, const PassShape& shape) const {
  const model::VaeConfig& vae = bundle_.vae->config();
  const model::TileSizes sizes{vae.sample_size / vae.downscale(), vae.sample_size};
  if (!config_.data.vae_tiling || !model::needs_tiles(shape.height, shape.width, sizes)) return pass.at(shape);
  const PassShape tile{shape.batch, std::min(shape.height, sizes.input), std::min(shape.width, sizes.input)};
  PassCost cost = pass.at(tile);
  const double tiles = static_cast<double>(model::length_of_tiles(shape.height, sizes.input) *
                                           model::length_of_tiles(shape.width, sizes.input)) /
                       static_cast<double>(tile.cells());
  cost.flops *= tiles;
  cost.attention_flops *= tiles;
  return cost;
}

PassCost ModelTrace::trace_encoding(const PassShape& shape) {
  return trace_pass([&](const MarkPiece& mark) {
    const torch::NoGradGuard no_grad;
    const std::int64_t factor = bundle_.vae_factor();
    mark("vae");
    bundle_.vae->encode(torch::zeros({shape.batch, 3, shape.height * factor, shape.width * factor}));
  });
}

PassCost ModelTrace::trace_decoding(const PassShape& shape) {
  return trace_pass([&](const MarkPiece& mark) {
    const torch::NoGradGuard no_grad;
    mark("vae");
    bundle_.vae->decode(torch::zeros({shape.batch, bundle_.vae->config().latent_channels, shape.height, shape.width}));
  });
}

}  // namespace sdtune::train
