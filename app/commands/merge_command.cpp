// `sdtune merge`: LoRAs into the weights of a model.
#include <ATen/core/grad_mode.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/error_report.h"
#include "app/cli/given_options.h"
#include "app/cli/print_json.h"
#include "app/commands/chosen_model.h"
#include "app/commands/command.h"
#include "app/commands/merge_options.h"
#include "app/commands/model_output.h"
#include "model/core/device.h"
#include "model/files/file_system.h"
#include "model/files/model_note.h"
#include "model/lora/lora_list.h"
#include "model/lora/lora_model.h"
#include "model/lora/lora_weights.h"
#include "model/pipeline/bundle_configs.h"
#include "model/single_file/convert.h"
#include "model/single_file/single_file_read.h"
#include "model/single_file/single_file_write.h"
#include "model/weights/safetensors_writer.h"
#include "model/weights/tensor_source.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

// A model in float32, and what its weights are written in.
struct Source {
  model::ModelBundle bundle;
  torch::Dtype dtype;
  std::optional<model::ModelFamily> family;  // of a single file
};

// `asked` is of what is written; none: what holds the model's weights exactly.
Source read_source(const std::string& name, model::SingleFileOptions reading, std::optional<torch::Dtype> asked) {
  if (is_file(name)) {
    reading.names_only = true;
    reading.dtype = asked;
    const torch::Dtype written = model::read_single_file(name, reading).dtype;
    reading.names_only = false;
    reading.dtype = torch::kFloat32;
    model::SingleFileModel file = model::read_single_file(name, reading);
    return {std::move(file.bundle), written, file.family};
  }
  model::ModelBundle bundle = model::load_model(choose_model(name, "runs").folder, torch::kFloat32, torch::kCPU);
  const torch::Dtype written = asked ? *asked : model::dtype_of_folder(bundle.folder);
  return {std::move(bundle), written, std::nullopt};
}

class MergeCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"merge", "Merges LoRAs into the weights of a model.",
            "sdtune merge --model MODEL --lora FILE[:WEIGHT] --output MODEL [options]"};
  }
  FieldList fields() override { return options_.fields(); }

  int run(Arguments arguments) override {
    read_options(arguments);
    check_model_output(options_.output, options_.overwrite);
    Source source = read_source(options_.model, options_.single_file.reading(), asked_dtype());
    model::attach_loras(source.bundle, loras_);
    const std::size_t branches = model::fuse_loras(source.bundle).size();
    if (branches == 0) {
      throw ConfigError("--lora", "is not given, and --model is no LoRA run", "name one: --lora FILE[:WEIGHT]");
    }
    refuse_overflow(source);
    write(source);
    std::fprintf(stderr, "merged   %zu branches, %s\nchecked  read back, verified bit for bit\n", branches,
                 model::dtype_name(source.dtype).c_str());
    print(branches, source.dtype);
    finish_output();
    return 0;
  }

 private:
  void print(std::size_t branches, torch::Dtype dtype) const {
    if (!options_.json) {
      std::puts(options_.output.c_str());
      return;
    }
    Json loras = Json::array();
    for (const model::WeightedLora& lora : loras_) {
      loras.push_back({{"file", lora.file.string()}, {"weight", lora.weight}});
    }
    print_json({{"model", options_.model},
                {"loras", loras},
                {"branches", branches},
                {"dtype", model::dtype_name(dtype)},
                {"output", options_.output}});
  }

  // Throws all that is wrong at once.
  void read_options(const Arguments& arguments) {
    GivenOptions given = apply_options(options_.fields(), arguments, "", "name the model with --model");
    require_model_and_output(options_.model, options_.output, given.problems);
    if (names_other_file(options_.output)) {
      given.problems.push_back({"--output", "names a file that sdtune does not write (got " + options_.output + ")",
                                "allowed: a .safetensors file or a folder"});
    }
    if (!options_.model.empty() && !is_file(options_.model)) {
      options_.single_file.refuse(given.origins, options_.model, given.problems);
    }
    loras_ = model::parse_lora_list(options_.lora, "--lora", given.problems);
    if (!given.problems.empty()) throw ConfigError(given.problems);
  }

  std::optional<torch::Dtype> asked_dtype() const {
    if (options_.dtype == "auto") return std::nullopt;
    return model::parse_dtype(options_.dtype, "--dtype");
  }

  // Of the sums: base and LoRA may each fit.
  static void refuse_overflow(const Source& source) {
    std::vector<model::TensorSource> sources;
    const auto add = [&](const char* part, const torch::nn::Module& module) {
      model::NamedTensors tensors;
      for (const auto& item : module.named_parameters()) tensors.emplace_back(item.key(), item.value());
      sources.push_back(model::TensorSource::of_tensors(std::string("the merged ") + part, tensors));
    };
    add("unet", *source.bundle.unet);
    add("vae", *source.bundle.vae);
    add("text_encoder", *source.bundle.text_encoder);
    if (source.bundle.is_xl()) add("text_encoder_2", *source.bundle.text_encoder_2);
    model::refuse_overflow(sources, source.dtype);
  }

  void write(const Source& source) const {
    const torch::NoGradGuard no_grad;
    if (names_single_file(options_.output)) {
      const fs::path& folder = source.bundle.folder;
      const model::ModelFamily family =
          source.family ? *source.family : model::family_of(model::BundleConfigs::read(folder), folder.string());
      model::write_single_file(real_file_system(), source.bundle, family, options_.output, source.dtype);
      return;
    }
    model::save_bundle(real_file_system(), source.bundle, options_.output, source.dtype,
                       {.add = [&](const fs::path& folder) { write_model_note(real_file_system(), note(), folder); }});
  }

  // The words that the first LoRA was trained on call it in the merged model too.
  ModelNote note() const {
    ModelNote note;
    std::vector<fs::path> folders;
    for (const model::WeightedLora& lora : loras_) folders.push_back(lora.file.parent_path());
    if (!is_file(options_.model)) folders.push_back(choose_model(options_.model, "runs").folder);
    for (const fs::path& folder : folders) {
      const ModelNote found = read_model_note(folder);
      if (note.trigger.empty()) note.trigger = found.trigger;
      note.rendered_people |= found.rendered_people;
    }
    return note;
  }

  MergeOptions options_;
  std::vector<model::WeightedLora> loras_;
};

}  // namespace

std::unique_ptr<Command> make_merge_command() {
  return std::make_unique<MergeCommand>();
}

}  // namespace sdtune::app
