#include "train/prove/prove.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "model/core/device.h"
#include "model/files/sha256.h"
#include "model/pipeline/bundle.h"
#include "train/config/base_defaults.h"
#include "train/data/photo_set.h"
#include "train/preflight/run_lock.h"
#include "train/prove/parts.h"
#include "train/prove/piece.h"
#include "train/resume/resume_fingerprint.h"

namespace sdtune::train {

namespace {

using PartFunction = PartResult (*)(const ProveContext& context);

// The order: what is quick and what others build on comes first.
const std::vector<std::pair<std::string, PartFunction>>& all_parts() {
  static const std::vector<std::pair<std::string, PartFunction>> parts = {
      {"kernels", kernels_part},
      {"parity_fp32", [](const ProveContext& context) { return parity_part(context, "parity_fp32", "no"); }},
      {"parity_bf16", [](const ProveContext& context) { return parity_part(context, "parity_bf16", "bf16"); }},
      {"parity_fp16", [](const ProveContext& context) { return parity_part(context, "parity_fp16", "fp16"); }},
      {"graphs", graphs_part},
      {"ranks", ranks_part},
      {"dreambooth", dreambooth_part},
      {"plan", plan_part},
      {"diffusers", diffusers_part}};
  return parts;
}

std::string hash_of_photos(const TrainConfig& config) {
  const PhotoFolder photos = scan_photos(concepts_of(config.data), config.data);
  std::string text;
  for (const Photo& photo : photos.photos) text += photo.sha256 + " " + photo.caption + "\n";
  return sha256_hex(text);
}

// "NVIDIA L4" of the machine's report, or the CPU.
std::string device_name(const Json& machine, torch::Device device) {
  if (device.is_cpu()) return model::describe_device(device);
  const std::int64_t index = device.has_index() ? device.index() : 0;
  for (const Json& gpu : machine.value("gpus", Json::array())) {
    if (gpu.value("index", std::int64_t{-1}) == index) return gpu.value("name", std::string("GPU"));
  }
  return device.str();
}

std::string driver_name(const Json& machine) {
  return machine.contains("driver") && !machine.at("driver").is_null() ? machine.at("driver").dump() : "none";
}

std::int64_t usable_gpus(const Json& machine) {
  std::int64_t count = 0;
  for (const Json& gpu : machine.value("gpus", Json::array())) {
    if (!gpu.contains("fault") || gpu.at("fault").is_null() || gpu.at("fault") == "") ++count;
  }
  return count;
}

bool is_wanted(const ProveRequest& request, const std::string& part) {
  if (part == "diffusers" && request.against != "diffusers") return false;
  return request.parts.empty() || std::count(request.parts.begin(), request.parts.end(), part) > 0;
}

PartResult do_part(const ProveContext& context, const std::string& name, PartFunction part) {
  const auto start = std::chrono::steady_clock::now();
  PartResult result;
  try {
    result = part(context);
  } catch (const StorageError&) {
    throw;  // a full disk is no fault of the device
  } catch (const std::exception& error) {
    result = failed_part(name, error.what());
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

std::vector<std::string> prove_parts() {
  std::vector<std::string> names;
  for (const auto& [name, part] : all_parts()) names.push_back(name);
  return names;
}

ProveReport prove(const ProveRequest& request, const ProveListener& listener, const StopFlag& stop) {
  const torch::Device device = model::find_device(request.config.run.device, "device");
  const std::string fault = planted_fault(device.is_cpu() ? "cpu" : "cuda");
  const Json identity = {{"sdtune", SDTUNE_VERSION},
                         {"base", hash_of_base(model::find_base(request.config.run.base))},
                         {"set of photos", hash_of_photos(request.config)},
                         {"device", device_name(request.machine, device)},
                         {"driver", device.is_cpu() ? "none" : driver_name(request.machine)},
                         {"number of steps", std::to_string(request.steps)},
                         {"planted fault", fault.empty() ? "none" : fault}};
  const PartStore store(real_file_system(), request.output, identity);
  const RunLock lock(request.output / "prove.lock");
  ProveContext context{.program = request.program,
                       .store = store,
                       .config = request.config,
                       .is_cuda = device.is_cuda(),
                       .device = device.str(),
                       .gpus = usable_gpus(request.machine),
                       .steps = request.steps,
                       .against = request.against,
                       .fault = fault,
                       .deadline = std::nullopt,
                       .stop = stop};
  // A step of SDXL takes a small machine's CPU minutes, and the reference is computed there.
  if (base_family(model::find_base(request.config.run.base)) == "sdxl") context.recorded_steps = 1;
  if (request.minutes) {
    const std::chrono::duration<double> minutes(*request.minutes * 60);
    context.deadline = ProveContext::Clock::now() + std::chrono::duration_cast<ProveContext::Clock::duration>(minutes);
  }
  ProveReport report{identity, request.machine, fault, {}};
  for (const auto& [name, part] : all_parts()) {
    if (!is_wanted(request, name)) continue;
    std::optional<PartResult> result = store.find(name);
    const bool is_earlier = result.has_value();
    if (!is_earlier && !context.is_over()) {
      listener.begin(name);
      result = do_part(context, name, part);
      if (result->status != PartStatus::kUnfinished) store.keep(*result);
    }
    if (!result) {
      result = failed_part(name, "the time of this call was over");
      result->status = PartStatus::kUnfinished;
    }
    listener.end(*result, is_earlier);
    report.parts.push_back(std::move(*result));
    write_report(real_file_system(), store, report);
  }
  return report;
}

}  // namespace sdtune::train
