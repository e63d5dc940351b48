// `sdtune reference`: docs/reference.md, from the fields of every command; with --json the same for programs.
#include <cstdio>

#include "app/cli/print_json.h"
#include "app/commands/command.h"
#include "app/commands/options_json.h"
#include "model/options/option_group.h"

namespace sdtune::app {
namespace {

class ReferenceCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"reference", "Prints docs/reference.md: every option of every command.", "sdtune reference"};
  }
  FieldList fields() override {
    FieldList list;
    OptionGroup(list, "Reference").add("json", &json_, "Print the options as one JSON object.");
    return list;
  }
  bool hidden() const override { return true; }

  int run(Arguments arguments) override {
    Origins unused;
    apply_settings(fields(), arguments.settings, unused, arguments.problems);
    if (!arguments.problems.empty()) throw ConfigError(arguments.problems);
    if (json_) {
      print_json(options_json(make_commands()));
    } else {
      print_markdown();
    }
    return 0;
  }

 private:
  static void print_markdown() {
    std::string text =
        "# Options\n\nMade by `scripts/make_reference.py` from the declarations in the sources; do not edit.\n\n"
        "Flags may be written with underscores too (`--learning_rate`), and the same names are the keys of\n"
        "`--config FILE.yaml` and of Python's `TrainConfig`. A flag wins over the file, the file over the base's "
        "preset.\n"
        "A bool is given as `--flag`, `--flag=false` or `--no-flag`; `none` unsets an option that may be unset.\n";
    const std::unique_ptr<Command> trainer = make_train_command();
    const FieldList of_train = trainer->fields();
    for (const auto& command : make_commands()) {
      if (command->hidden()) continue;
      const bool is_train = command->help().name == trainer->help().name;
      const std::vector<Preset> presets = command->presets();
      text.append("\n").append(reference_markdown(command->help(), command->fields(), presets,
                                                  presets.empty() || is_train ? FieldList() : of_train));
    }
    std::fputs(text.c_str(), stdout);
  }

  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_reference_command() {
  return std::make_unique<ReferenceCommand>();
}

}  // namespace sdtune::app
