// What scripts/gpu_check.sh runs on a device: the networks on given inputs, timed training steps and timed sampling,
// for a Python script that does the same with diffusers. Needs no image library.
//
//   device_probe parity FOLDER DEVICE DTYPE INPUTS.safetensors OUTPUTS.safetensors
//   device_probe train  FOLDER DEVICE DTYPE BATCH STEPS
//   device_probe sample FOLDER DEVICE DTYPE STEPS
#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/core/device.h"
#include "model/core/random.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/text_to_image.h"
#include "model/weights/safetensors_file.h"
#include "model/weights/safetensors_writer.h"
#include "train/dist/gradient_buckets.h"
#include "train/optim/clip_grad.h"
#include "train/optim/optimizer.h"

namespace {

using namespace sdtune;

struct Probe {
  torch::Device device;
  torch::Dtype dtype;
  model::ModelBundle bundle;
};

Probe load_probe(const std::vector<std::string>& arguments) {
  const torch::Device device = model::parse_device(arguments.at(2), "DEVICE");
  const torch::Dtype dtype = model::parse_dtype(arguments.at(3), "DTYPE");
  return {device, dtype, model::load_bundle(arguments.at(1), dtype, device)};
}

// Everything queued on the device is done.
void finish_device(torch::Device device) {
  if (device.is_cuda()) c10::impl::VirtualGuardImpl(torch::kCUDA).synchronizeDevice(device.index());
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print_list(const char* name, const std::vector<double>& values) {
  std::cout << '"' << name << "\": [";
  for (std::size_t i = 0; i < values.size(); ++i) std::cout << (i == 0 ? "" : ", ") << values[i];
  std::cout << ']';
}

// UNet, text encoder and VAE on the given inputs, and the gradient of the UNet's mean squared output.
void run_parity(Probe& probe, const std::string& inputs, const std::string& outputs) {
  const model::SafetensorsFile file(inputs);
  const auto input = [&](const char* name) { return file.tensor(name).clone().to(probe.device); };
  const auto real = [&](const char* name) { return input(name).to(probe.dtype); };
  model::NamedTensors results;
  const auto keep = [&](const std::string& name, const torch::Tensor& tensor) {
    results.emplace_back(name, tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous());
  };
  for (const auto& parameter : probe.bundle.unet->parameters()) parameter.set_requires_grad(true);
  const torch::Tensor prediction = probe.bundle.unet->forward(real("sample"), input("timestep"), real("context"));
  prediction.to(torch::kFloat32).pow(2).mean().backward();
  keep("unet", prediction);
  for (const auto& item : probe.bundle.unet->named_parameters()) keep("grad." + item.key(), item.value().grad());
  const torch::NoGradGuard no_grad;
  keep("text", probe.bundle.text_encoder->forward(input("ids")).last_hidden_state);
  keep("mean", probe.bundle.vae->encode(real("image")).mean);
  keep("decoded", probe.bundle.vae->decode(real("sample")));
  model::write_safetensors(real_file_system(), outputs, results);
}

struct Trainer {
  std::unique_ptr<train::ProcessGroup> group;
  std::unique_ptr<train::GradientBuckets> buckets;
  std::unique_ptr<train::Optimizer> optimizer;
};

Trainer make_trainer(Probe& probe) {
  std::vector<train::NamedParameter> named;
  std::vector<train::TrainedParameter> trained;
  for (const auto& item : probe.bundle.unet->named_parameters()) {
    torch::Tensor weight = item.value();
    if (weight.dim() == 4) {
      weight.set_data(weight.detach().contiguous(model::fast_memory_format(probe.device, probe.dtype)));
    }
    weight.set_requires_grad(true);
    named.push_back({item.key(), weight});
    trained.push_back({item.key(), weight, torch::Tensor(), torch::Tensor(), 0});
  }
  Trainer trainer;
  train::RankEnv env;
  env.master_port = 29511;
  trainer.group = train::connect_ranks(env, probe.device, train::DistOptions{}, "probe");
  trainer.buckets = std::make_unique<train::GradientBuckets>(named, *trainer.group, train::BucketOptions{});
  for (std::size_t i = 0; i < trained.size(); ++i) trained[i].gradient = trainer.buckets->gradient(i);
  trainer.optimizer = train::make_optimizer(std::move(trained), train::OptimOptions{});
  return trainer;
}

void run_training(Probe& probe, std::int64_t batch, std::int64_t steps) {
  Trainer trainer = make_trainer(probe);
  const auto& config = probe.bundle.unet->config();
  const std::vector<std::int64_t> shape{config.in_channels, config.sample_size, config.sample_size};
  const torch::TensorOptions options = torch::dtype(torch::kFloat32).device(probe.device);
  const torch::Tensor rates = torch::full({1}, 1e-5, options.dtype(torch::kFloat64));
  const torch::Tensor one = torch::ones({}, options);
  const std::vector<model::SampleKey> context_keys(static_cast<std::size_t>(batch));
  const torch::Tensor context = model::draw_normal_batch(0, model::Draw::kWeights, context_keys,
                                                         {77, config.cross_attention_dim.front()}, probe.device)
                                    .to(probe.dtype);
  std::vector<double> seconds;
  std::vector<torch::Tensor> losses;
  for (std::int64_t step = 0; step < steps; ++step) {
    finish_device(probe.device);
    const auto start = std::chrono::steady_clock::now();
    std::vector<model::SampleKey> keys;
    for (std::int64_t i = 0; i < batch; ++i) {
      keys.push_back({static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(step * batch + i), false});
    }
    const torch::Tensor noise = model::draw_normal_batch(0, model::Draw::kNoise, keys, shape, probe.device);
    const torch::Tensor timesteps =
        model::draw_integer_batch(0, model::Draw::kTimestep, keys, 1000).to(probe.device, /*non_blocking=*/true);
    trainer.buckets->begin_step(1);
    trainer.buckets->begin_round();
    const torch::Tensor prediction = probe.bundle.unet->forward(noise.to(probe.dtype), timesteps, context);
    const torch::Tensor loss = (prediction.to(torch::kFloat32) - noise).pow(2).mean();
    loss.backward();
    trainer.buckets->finish_step();
    const train::ClippedGradient clipped = train::clip_gradient(trainer.optimizer->parameters(), one, 1.0);
    trainer.optimizer->step(rates, clipped.factor);
    finish_device(probe.device);
    seconds.push_back(seconds_since(start));
    losses.push_back(loss.detach());
  }
  std::vector<double> values;
  for (const torch::Tensor& loss : losses) values.push_back(loss.item<double>());
  std::cout << "{\"reduced_bytes\": " << trainer.group->reduced_bytes() << ", ";
  print_list("losses", values);
  std::cout << ", ";
  print_list("seconds", seconds);
  std::cout << "}\n";
}

void run_sampling(Probe& probe, std::int64_t steps) {
  model::SampleRequest request;
  request.prompts = {"a photo of a cat"};
  request.steps = steps;
  std::vector<double> seconds;
  for (int round = 0; round < 3; ++round) {  // the first one warms up
    const auto scheduler = model::make_sampler(probe.bundle);
    const auto start = std::chrono::steady_clock::now();
    model::generate_latents(probe.bundle, *scheduler, request);
    finish_device(probe.device);
    seconds.push_back(seconds_since(start));
  }
  std::cout << '{';
  print_list("seconds", seconds);
  std::cout << "}\n";
}

}  // namespace

int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  try {
    at::globalContext().setFloat32MatmulPrecision("highest");
    at::globalContext().setAllowTF32CuDNN(false);
    const std::string what = arguments.at(0);
    Probe probe = load_probe(arguments);
    if (what == "parity") {
      run_parity(probe, arguments.at(4), arguments.at(5));
    } else if (what == "train") {
      run_training(probe, std::stoll(arguments.at(4)), std::stoll(arguments.at(5)));
    } else if (what == "sample") {
      run_sampling(probe, std::stoll(arguments.at(4)));
    } else {
      throw std::invalid_argument("unknown probe " + what);
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "device_probe: error: " << error.what() << '\n';
    return 1;
  }
}
