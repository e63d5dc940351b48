// `sdtune doctor`: faults and warnings of a folder of photos, before training; or of the machine.
#include <cstdio>
#include <filesystem>
#include <optional>

#include "app/cli/error_report.h"
#include "app/cli/print_json.h"
#include "app/commands/command.h"
#include "app/commands/photo_advice.h"
#include "app/commands/photo_json.h"
#include "app/commands/training_arguments.h"
#include "app/commands/written_paths.h"
#include "model/base/printable.h"
#include "model/machine/machine_text.h"
#include "model/options/option_group.h"
#include "train/config/preset.h"
#include "train/portrait/evaluate/classifier_reader_source.h"
#include "train/preflight/photo_report.h"

namespace sdtune::app {
namespace {

class DoctorCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"doctor", "Examines photos before training, or the machine (GPUs, memory, disk).",
            "sdtune doctor --images DIR [--contact-sheet FILE.png] [options of train]\n       sdtune doctor --machine "
            "[--json]"};
  }

  FieldList fields() override { return options_.fields(own_fields()); }
  std::vector<Preset> presets() const override { return train::installed_presets(); }

  // 0, or 2 when a photo cannot be read; with --machine 2 when a run cannot work: a GPU that is there and
  // cannot be used, no memory, a folder that cannot be written.
  int run(Arguments arguments) override {
    options_.load(arguments, own_fields());
    std::vector<Problem> problems = options_.loaded.problems;
    const train::TrainConfig& config = options_.loaded.config;
    if (machine_) return examine_machine(problems, config);
    if (config.data.images.empty() && config.data.concepts.empty()) {
      problems.push_back({"--images", "is not given", "name the folder with the photos"});
    }
    check_image_file("contact_sheet", contact_sheet_, problems);
    if (!problems.empty()) throw ConfigError(problems);
    const train::PhotoReport report =
        train::examine_photos(config, train::evaluate::classifier_reader_source(),
                              contact_sheet_.empty() ? train::PhotoUse::kExamine : train::PhotoUse::kPrepare);
    if (!json_) print_text(report);
    const std::optional<std::size_t> shown = write_sheet(report, config.data);
    if (json_) print_report(report, shown);
    finish_output();
    return static_cast<int>(report.folder.bad.empty() ? ExitCode::kDone : ExitCode::kBadInput);
  }

 private:
  FieldList own_fields() {
    FieldList list;
    OptionGroup group(list, "Doctor");
    group.add("machine", &machine_,
              "Examine the machine instead of photos: processor, memory, GPUs, the disk of --output, network, limits, "
              "clock.");
    group.add("json", &json_, "Print the result as one JSON object.");
    group
        .add("contact_sheet", &contact_sheet_,
             "Write an image of all crops as they are trained on, at full resolution.")
        .placeholder("FILE.png");
    return list;
  }

  int examine_machine(std::vector<Problem> problems, const train::TrainConfig& config) const {
    if (!config.data.images.empty() || !config.data.concepts.empty() || !contact_sheet_.empty()) {
      problems.push_back(
          {"--machine", "examines no photos (got --images, --concepts or --contact-sheet)", "give one of them"});
    }
    if (!problems.empty()) throw ConfigError(problems);
    const model::MachineReport report = model::report_machine(config.run.output.empty() ? "runs" : config.run.output);
    if (json_) {
      print_json(model::machine_json(report));
    } else {
      std::fputs(model::machine_text(report).c_str(), stdout);
    }
    finish_output();
    return static_cast<int>(report.has_failed() ? ExitCode::kBadInput : ExitCode::kDone);
  }

  // `shown`: how many photos the contact sheet shows, unset without one.
  void print_report(const train::PhotoReport& report, std::optional<std::size_t> shown) const {
    Json json = photo_report_json(report);
    json["contact_sheet"] = shown ? Json(contact_sheet_) : Json();
    if (shown) json["contact_sheet_photos"] = *shown;
    print_json(json);
  }

  static void print_text(const train::PhotoReport& report) {
    for (const train::Photo& photo : report.folder.photos) {
      const std::string faces =
          photo.analysis && photo.analysis->searched ? std::to_string(photo.analysis->faces.size()) : "?";
      std::printf("%-32s %5lld x %-5lld sharpness %.3f  faces %s  \"%s\"\n", printable(photo.name).c_str(),
                  static_cast<long long>(photo.width), static_cast<long long>(photo.height),
                  photo.analysis ? photo.analysis->signs.sharpness : 0.0, faces.c_str(),
                  printable(photo.caption).c_str());
    }
    print_problems(report.folder.bad);
    print_advice({report.folder.warnings, {}});
    print_advice(report.diagnosis);
    std::printf("%zu photos, %zu warnings, %zu that cannot be read\n", report.folder.photos.size(),
                report.folder.warnings.size() + report.diagnosis.warnings.size(), report.folder.bad.size());
  }

  // How many photos it shows; unset where none is written.
  std::optional<std::size_t> write_sheet(const train::PhotoReport& report, const train::DataOptions& options) const {
    if (contact_sheet_.empty() || report.folder.photos.empty()) return std::nullopt;
    const std::filesystem::path path = contact_sheet_;
    create_parent_folder(real_file_system(), path);
    const std::size_t shown = train::write_contact_sheet(real_file_system(), path, report, options);
    if (shown < report.folder.photos.size()) {
      std::fprintf(stderr, "sdtune: note: the contact sheet shows the first %zu photos\n", shown);
    }
    if (!json_) std::puts(contact_sheet_.c_str());
    return shown;
  }

  bool machine_ = false;
  bool json_ = false;
  std::string contact_sheet_;
  TrainingArguments options_;
};

}  // namespace

std::unique_ptr<Command> make_doctor_command() {
  return std::make_unique<DoctorCommand>();
}

}  // namespace sdtune::app
