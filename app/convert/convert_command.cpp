// `sdtune convert`: a diffusers folder to an LDM single file, and back; a pickle; a LoRA to other names.
#include <cstdio>
#include <filesystem>

#include "app/cli/error_report.h"
#include "app/cli/given_options.h"
#include "app/cli/print_json.h"
#include "app/commands/command.h"
#include "app/commands/model_output.h"
#include "app/convert/convert_options.h"
#include "app/convert/lora_conversion.h"
#include "app/convert/pickle_conversion.h"
#include "model/base/error.h"
#include "model/core/device.h"
#include "model/files/file_system.h"
#include "model/files/hub_cache.h"
#include "model/single_file/convert.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

class ConvertCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"convert", "Converts a diffusers folder to one file, or back; reads .ckpt and .bin.",
            "sdtune convert --model FOLDER|FILE --output FILE|FOLDER [options]\n"
            "       sdtune convert --pickle FILE --output FILE|FOLDER [options]\n"
            "       sdtune convert --model FOLDER --lora FILE --output FILE [options]"};
  }
  FieldList fields() override { return options_.fields(); }

  int run(Arguments arguments) override {
    read_options(arguments);
    if (!options_.lora.empty()) {
      convert_lora(options_);
      finish_output();
      return 0;
    }
    const bool of_pickle = !options_.pickle.empty();
    if (of_pickle && names_single_file(options_.output)) {
      convert_pickle(options_);
      finish_output();
      return 0;
    }
    const bool to_folder = of_pickle || is_file(options_.model);
    check_output(to_folder);
    const model::ConvertRequest request = make_request(to_folder);
    const model::ConvertReport report = to_folder ? model::convert_to_folder(real_file_system(), request)
                                                  : model::convert_to_single_file(real_file_system(), request);
    print(report, request);
    finish_output();
    return 0;
  }

 private:
  // Throws all that is wrong at once.
  void read_options(const Arguments& arguments) {
    GivenOptions given = apply_options(options_.fields(), arguments, "", "name the model with --model");
    const bool of_pickle = !options_.pickle.empty();
    require_model_and_output(of_pickle ? options_.pickle : options_.model, options_.output, given.problems);
    refuse_beside_pickle(given.problems);
    if (options_.lora.empty() && given.origins.count("lora_naming") > 0) {
      given.problems.push_back({"--lora-naming", "is of --lora, which is not given", ""});
    }
    std::error_code status;
    const bool names_file = names_single_file(options_.model) || names_other_file(options_.model);
    const bool absent = names_file && !fs::exists(options_.model, status);
    if (absent) given.problems.push_back({options_.model, "is not there", ""});
    if (!options_.lora.empty() && is_file(options_.model)) {
      given.problems.push_back({"--model", "must be a diffusers folder for --lora (got " + options_.model + ")", ""});
    }
    const bool from_folder = !absent && !options_.model.empty() && !is_file(options_.model);
    if (from_folder) options_.single_file.refuse(given.origins, options_.model, given.problems);
    if (of_pickle && names_single_file(options_.output)) {
      options_.single_file.refuse(given.origins, "the tensors of a pickle", given.problems);
    }
    if (!given.problems.empty()) throw ConfigError(given.problems);
  }

  void refuse_beside_pickle(std::vector<Problem>& problems) const {
    if (options_.pickle.empty()) {
      if (!options_.pickle_key.empty()) problems.push_back({"--pickle-key", "is of --pickle, which is not given", ""});
      return;
    }
    if (!options_.model.empty()) problems.push_back({"--model", "is given beside --pickle", "leave one out"});
    if (!options_.lora.empty()) {
      problems.push_back(
          {"--lora", "is given beside --pickle", "convert the LoRA with --pickle first, then rename it"});
    }
  }

  // The other kind than --model, and nothing there that is not to be replaced.
  void check_output(bool to_folder) const {
    const fs::path output = options_.output;
    if (to_folder && names_single_file(output)) {
      throw ConfigError("--output", "names a file, and --model is one already (got " + output.string() + ")",
                        "give the folder to make");
    }
    if (to_folder && names_other_file(output)) {
      throw ConfigError("--output", "names a file that sdtune does not write (got " + output.string() + ")",
                        "give the folder to make");
    }
    if (!to_folder && !names_single_file(output)) {
      find_model_folder(options_.model);  // what is not there is no folder either
      throw ConfigError("--output",
                        "must end in .safetensors, since --model is a folder (got " + output.string() + ")");
    }
    check_model_output(output, options_.overwrite);
  }

  model::ConvertRequest make_request(bool to_folder) const {
    model::ConvertRequest request;
    request.model = to_folder ? fs::path(options_.model) : find_model_folder(options_.model);
    if (!options_.pickle.empty()) request.model = options_.pickle;
    request.output = options_.output;
    request.dry_run = options_.dry_run;
    request.reading = options_.single_file.reading();
    if (!options_.pickle.empty()) request.reading.pickle_key = options_.pickle_key;
    if (options_.dtype != "auto") request.reading.dtype = model::parse_dtype(options_.dtype, "--dtype");
    return request;
  }

  void print(const model::ConvertReport& report, const model::ConvertRequest& request) const {
    std::fprintf(stderr, "model    %s (%s)\n", request.model.c_str(), model::family_name(report.family));
    std::fprintf(stderr, "predicts %s (%s)\n", report.prediction.type.c_str(), report.prediction.origin.c_str());
    std::fprintf(stderr, "weights  %lld matched, 0 missing, 0 unexpected, %zu ignored; %s\n",
                 static_cast<long long>(report.matched), report.ignored.size(),
                 model::dtype_name(report.dtype).c_str());
    std::fprintf(stderr, "%s\n",
                 request.dry_run ? "dry run  nothing is written" : "checked  read back, verified bit for bit");
    if (options_.json) {
      print_json({{"kind", "model"},
                  {"model", request.model.string()},
                  {"output", request.dry_run ? Json() : Json(request.output.string())},
                  {"family", model::family_name(report.family)},
                  {"prediction_type", report.prediction.type},
                  {"prediction_origin", report.prediction.origin},
                  {"tensors", report.matched},
                  {"ignored", report.ignored},
                  {"dtype", model::dtype_name(report.dtype)}});
    } else if (!request.dry_run) {
      std::puts(request.output.c_str());
    }
  }

  ConvertOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_convert_command() {
  return std::make_unique<ConvertCommand>();
}

}  // namespace sdtune::app
