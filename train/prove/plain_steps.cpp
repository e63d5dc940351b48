#include "train/prove/plain_steps.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "model/schedule/prediction.h"
#include "train/parameters/trainable_parameters.h"
#include "train/prove/adamw_statement.h"
#include "train/prove/record_comparison.h"

namespace sdtune::train {

namespace {

const torch::Tensor& input(const StepRecord& of, const std::string& name, std::int64_t index) {
  const torch::Tensor* found = of.find(name + "." + std::to_string(index));
  TORCH_CHECK(found != nullptr, "plain_steps: the record has no ", name, ".", index);
  return *found;
}

// mean((f(sqrt(abar) x + sqrt(1 - abar) noise) - target)^2), Ho et al. (2020), eq. 14, and its v form.
torch::Tensor plain_loss(Run& run, const StepRecord& of, std::int64_t index) {
  const model::NoiseSchedule schedule = model::NoiseSchedule::from_config(run.bundle.scheduler_config);
  const torch::Tensor latents = input(of, "latents", index), noise = input(of, "noise", index);
  const torch::Tensor timesteps = input(of, "timesteps", index);
  const torch::Tensor abar = schedule.alphas_cumprod.index_select(0, timesteps).view({-1, 1, 1, 1});
  const torch::Tensor alpha = abar.sqrt(), sigma = (1 - abar).sqrt();
  torch::Tensor target = noise;
  switch (model::prediction_type_of(run.bundle.scheduler_config)) {
    case model::PredictionType::kEpsilon:
      break;
    case model::PredictionType::kVPrediction:
      target = alpha * noise - sigma * latents;
      break;
    case model::PredictionType::kSample:
      target = latents;
      break;
  }
  model::AddedConditions added;
  if (run.bundle.is_xl()) added = {input(of, "text_embeds", index), input(of, "time_ids", index)};
  const torch::Tensor predicted =
      run.bundle.unet->forward(alpha * latents + sigma * noise, timesteps, input(of, "context", index), added);
  return (predicted - target).pow(2).mean();
}

// By a backward pass of the whole: recomputed activations give weights their gradients in no other way.
std::vector<torch::Tensor> gradients_of(const torch::Tensor& loss, std::vector<torch::Tensor>& weights) {
  loss.backward();
  std::vector<torch::Tensor> gradients;
  for (torch::Tensor& weight : weights) {
    TORCH_CHECK(weight.grad().defined(), "plain_steps: a trained weight has no gradient");
    gradients.push_back(weight.grad());
    weight.mutable_grad().reset();
  }
  return gradients;
}

torch::Tensor as_tensor(const std::vector<double>& values) {
  return torch::tensor(values, torch::kFloat64).to(torch::kFloat32);
}

}  // namespace

StepRecord plain_steps(Run& run, const StepRecord& of) {
  const std::vector<ModuleParameter> trained = trainable_parameters(run.bundle, /*train_text_encoder=*/false);
  freeze_all_but(run.bundle, trained);
  run.bundle.unet->set_gradient_checkpointing(run.config.run.gradient_checkpointing);
  std::vector<torch::Tensor> weights, starts;
  for (const ModuleParameter& parameter : trained) {
    weights.push_back(parameter.weight);
    starts.push_back(sampled(parameter.weight));
  }
  AdamWStatement statement(run.config.optim, /*in_double=*/false);
  StepRecord record;
  std::vector<double> losses, norms;
  const auto count = of.facts.at("steps").get<std::int64_t>();
  for (std::int64_t index = 0; index < count; ++index) {
    const torch::Tensor loss = plain_loss(run, of, index);
    std::vector<torch::Tensor> gradients = gradients_of(loss, weights);
    losses.push_back(loss.item<double>());
    norms.push_back(norm_of(gradients));
    for (std::size_t i = 0; index == 0 && i < trained.size(); ++i) {
      record.tensors.emplace_back("gradient." + trained[i].name, sampled(gradients[i]).to(torch::kFloat32));
    }
    const double factor = clip_factor(norms.back(), run.config.optim.max_grad_norm);
    for (torch::Tensor& gradient : gradients) gradient = gradient * factor;
    statement.update(weights, gradients);
  }
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const torch::Tensor change = sampled(trained[i].weight) - starts[i];
    record.tensors.emplace_back("change." + trained[i].name, change.to(torch::kFloat32));
  }
  record.tensors.emplace_back("losses", as_tensor(losses));
  record.tensors.emplace_back("norms", as_tensor(norms));
  record.facts["steps"] = count;
  return record;
}

InputErrors input_errors(Run& run, const StepRecord& of) {
  const at::NoGradGuard no_grad;
  InputErrors errors;
  const auto first = of.facts.at("first_step").get<std::uint64_t>();
  model::NamedTensors own;
  keep_inputs(run, first, 0, own);
  for (const auto& [name, tensor] : own) {
    const torch::Tensor* theirs = of.find(name);
    TORCH_CHECK(theirs != nullptr, "input_errors: the record has no ", name);
    if (name == "timesteps.0") errors.same_timesteps = tensor.equal(*theirs);
    if (name == "latents.0") errors.latents = relative_difference(*theirs, tensor);
    if (name == "context.0") errors.context = relative_difference(*theirs, tensor);
    if (name == "noise.0") errors.noise = relative_difference(*theirs, tensor);
  }
  return errors;
}

}  // namespace sdtune::train
