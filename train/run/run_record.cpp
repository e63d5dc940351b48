#include "train/run/run_record.h"

#include <torch/version.h>

#include <exception>

#include "model/base/json.h"
#include "model/core/cpu_implementation.h"
#include "model/core/device.h"
#include "model/files/sha256.h"
#include "model/machine/processor_kind.h"

namespace sdtune::train {

namespace {

Json image_manifest(const Run& run) {
  Json images = Json::array();
  for (const Photo& photo : run.data.photos.photos) {
    Json& image = images.emplace_back(Json{{"path", photo.path.string()},
                                           {"size", photo.bytes},
                                           {"sha256", photo.sha256},
                                           {"caption", photo.caption},
                                           {"repeats", photo.repeats}});
    if (!photo.auto_caption.empty()) image["auto_caption"] = photo.auto_caption;
  }
  return images;
}

}  // namespace

void write_run_record(FileSystem& files, const Run& run, const RecordedAttempts& attempts) {
  TrainConfig config = run.config;
  const std::string yaml = config_to_yaml(config.fields(), config.origins);
  write_file_atomically(files, run.folder.config(), yaml);
  Json record = Json::object();
  record["sdtune"] = SDTUNE_VERSION;
  record["libtorch"] = TORCH_VERSION;
  record["device"] = model::describe_device(run.device);
  record["processor"] = model::kind_text(model::processor_kind());
  record["implementation"] = Json::object();  // of operators on the CPU
  for (const model::CpuChoice& choice : model::kCpuChoices) {
    record["implementation"][choice.name] = choice.value_in(model::cpu_implementation());
  }
  record["dtype"] = model::dtype_name(run.dtype);
  record["ranks"] = run.group->world_size();
  record["seed"] = run.config.run.seed;
  record["base"] = run.config.run.base;
  record["base_hash"] = run.fingerprint.base_hash;
  record["config_hash"] = sha256_hex(yaml);
  record["images"] = image_manifest(run);
  record["attempts"] = attempts.earlier;
  record["attempts"].push_back({{"attempt", run.attempt},
                                {"device", record["device"]},
                                {"first_step", run.first_step},
                                {"started", attempts.started}});
  // Names of files need not be UTF-8.
  write_file_atomically(files, run.folder.record(), record.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void write_last_error(FileSystem& files, const RunFolder& folder, const Error& error) noexcept {
  try {
    Json json = Json::object();
    json["exit_code"] = static_cast<int>(error.code());
    json["problems"] = Json::array();
    for (const Problem& problem : error.problems()) {
      json["problems"].push_back({{"where", problem.where}, {"what", problem.what}, {"hint", problem.hint}});
    }
    write_file_atomically(files, folder.last_error(), json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace sdtune::train
