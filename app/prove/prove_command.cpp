// `sdtune prove`: what sdtune promises, tried on the device at hand.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "app/cli/error_report.h"
#include "app/cli/given_options.h"
#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/commands/written_paths.h"
#include "app/prove/prove_options.h"
#include "model/core/device.h"
#include "model/machine/machine_text.h"
#include "train/config/load_config.h"
#include "train/portrait/evaluate/classifier_reader_source.h"
#include "train/preflight/preflight.h"
#include "train/prove/prove.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kStepsOnGpu = 200, kStepsOnCpu = 60;

class ProveCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"prove", "Tries on this machine what sdtune promises, in parts that can be resumed.",
            "sdtune prove --base DIR --images DIR [--against diffusers] [--device cpu]"};
  }
  FieldList fields() override { return options_.fields(); }

  // 0 where all passed, 1 where a part failed, 130 or 143 where parts are left.
  int run(Arguments arguments) override {
    const StopFlag& stop = install_stop_signals();
    const train::ProveRequest request = make_request(arguments);
    const train::ProveReport report = train::prove(request, listener(), stop);
    if (options_.json) {
      std::puts(report_json(report).dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    } else {
      print_end(report);
    }
    finish_output();
    if (report.has(train::PartStatus::kUnfinished)) return stop.exit_code_or(static_cast<int>(ExitCode::kTerminated));
    return report.has(train::PartStatus::kFailed) ? 1 : 0;
  }

 private:
  train::ProveRequest make_request(const Arguments& arguments) {
    GivenOptions given = apply_options(options_.fields(), arguments, "", "--help lists all options");
    check_parts(given.problems);
    check_output_folder(options_.output, given.problems);
    train::ProveRequest request;
    request.config = load_config(given.problems);
    if (!given.problems.empty()) throw ConfigError(given.problems);
    const bool is_cuda = !model::find_device(options_.device, "device").is_cpu();
    request.output = fs::absolute(options_.output).lexically_normal();
    request.parts = options_.parts;
    request.against = options_.against.value_or("");
    request.minutes = options_.minutes;
    request.steps = options_.steps.value_or(is_cuda ? kStepsOnGpu : kStepsOnCpu);
    request.program = fs::read_symlink("/proc/self/exe");
    request.machine = model::machine_json(model::report_machine(request.output));
    return request;
  }

  void check_parts(std::vector<Problem>& problems) const {
    const std::vector<std::string> known = train::prove_parts();
    std::string allowed;
    for (const std::string& name : known) allowed += (allowed.empty() ? "" : ", ") + name;
    for (const std::string& part : options_.parts) {
      if (std::find(known.begin(), known.end(), part) != known.end()) {
        if (part == "diffusers" && !options_.against) {
          problems.push_back({"--parts", "diffusers needs --against diffusers", ""});
        }
        continue;
      }
      problems.push_back({"--parts", "there is no such part (got " + part + "; allowed: " + allowed + ")", ""});
    }
  }

  // The base's preset, with absolute paths: the parts run in processes of their own.
  train::TrainConfig load_config(std::vector<Problem>& problems) const {
    std::vector<Setting> settings = {{"device", {options_.device}, false, false, "--device", false}};
    if (!options_.base.empty()) {
      const std::string base = fs::exists(options_.base) ? fs::absolute(options_.base).string() : options_.base;
      settings.push_back({"base", {base}, false, false, "--base", false});
    }
    if (!options_.images.empty()) {
      settings.push_back({"images", {fs::absolute(options_.images).string()}, false, false, "--images", false});
    }
    train::LoadedConfig loaded = train::load_train_config("", settings);
    problems.insert(problems.end(), loaded.problems.begin(), loaded.problems.end());
    if (options_.images.empty()) {
      problems.push_back({"--images", "is not given", "name the folder with the photos"});
    }
    if (!problems.empty()) return loaded.config;
    train::TrainConfig tried = loaded.config;
    tried.run.output = (fs::absolute(options_.output) / "work" / "none").string();
    const std::vector<Problem> found = train::find_problems(tried, train::evaluate::classifier_reader_source());
    problems.insert(problems.end(), found.begin(), found.end());
    return loaded.config;
  }

  train::ProveListener listener() const {
    train::ProveListener listener;
    listener.begin = [](const std::string& part) { std::fprintf(stderr, "sdtune: prove %s ...\n", part.c_str()); };
    listener.end = [this](const train::PartResult& result, bool is_of_earlier_call) {
      if (options_.json) return;
      std::printf("%-12s %-10s %s%s\n", result.name.c_str(), train::status_name(result.status).c_str(),
                  result.reason.c_str(), is_of_earlier_call ? " (of an earlier call)" : "");
      std::fflush(stdout);
    };
    return listener;
  }

  void print_end(const train::ProveReport& report) const {
    const std::string verdict = report.verdict();
    const std::string more = verdict == "unfinished" ? "; the same command continues" : "";
    std::printf("%s%s: %s/prove.html; %s/send_in.txt says how to send it in\n", verdict.c_str(), more.c_str(),
                options_.output.c_str(), options_.output.c_str());
  }

  ProveOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_prove_command() {
  return std::make_unique<ProveCommand>();
}

}  // namespace sdtune::app
