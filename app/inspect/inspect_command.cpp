// `sdtune inspect`.
#include "app/inspect/inspect_command.h"

#include <fmt/ranges.h>

#include <cstdio>

#include "app/cli/print_json.h"
#include "app/commands/command.h"
#include "model/base/printable.h"
#include "model/options/option_group.h"

namespace sdtune::app {
namespace {

constexpr std::size_t kShownItems = 10;  // of a long list; --json has all of it

std::string scalar_text(const Json& value) {
  // Names of tensors and files may hold what a terminal takes for a command.
  return value.is_string() ? printable(value.get<std::string>())
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "key: value" lines; objects and lists are indented below their key, empty ones say "none".
void print(const Json& json, const std::string& indent);

void print_list(const Json& list, const std::string& indent) {
  std::size_t shown = 0;
  for (const Json& item : list) {
    if (shown++ == kShownItems) {
      std::printf("%s... and %zu more\n", indent.c_str(), list.size() - kShownItems);
      return;
    }
    if (!item.is_object()) {
      std::printf("%s- %s\n", indent.c_str(), scalar_text(item).c_str());
      continue;
    }
    std::vector<std::string> values;
    for (const auto& [key, value] : item.items()) values.push_back(printable(key) + " " + scalar_text(value));
    std::printf("%s- %s\n", indent.c_str(), fmt::format("{}", fmt::join(values, ", ")).c_str());
  }
}

void print(const Json& json, const std::string& indent) {
  for (const auto& [key, value] : json.items()) {
    if (!value.is_structured()) {
      std::printf("%s%s: %s\n", indent.c_str(), printable(key).c_str(), scalar_text(value).c_str());
    } else if (value.empty()) {
      std::printf("%s%s: none\n", indent.c_str(), printable(key).c_str());
    } else {
      std::printf("%s%s:\n", indent.c_str(), printable(key).c_str());
      if (value.is_array()) {
        print_list(value, indent + "  ");
      } else {
        print(value, indent + "  ");
      }
    }
  }
}

class InspectCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"inspect",
            "Describes a model folder, safetensors file, checkpoint, run or image folder.",
            "sdtune inspect PATH [--json]",
            {{"path", "A model folder, part of a model, safetensors file, checkpoint, run, or image folder or file."}}};
  }
  std::vector<std::string> positionals() const override { return {"PATH"}; }

  FieldList fields() override {
    FieldList list;
    OptionGroup(list, "Inspect").add("json", &json_, "Print the result as one JSON object.");
    return list;
  }

  int run(Arguments arguments) override {
    std::vector<Problem> problems = arguments.problems;
    Origins unused;
    apply_settings(fields(), arguments.settings, unused, problems);
    if (arguments.positionals.size() != 1) {
      problems.push_back({"inspect", "takes one path (got " + std::to_string(arguments.positionals.size()) + ")", ""});
    }
    if (!problems.empty()) throw ConfigError(problems);
    Json json = inspect_path(arguments.positionals.front());
    json["path"] = arguments.positionals.front();
    if (json_) {
      print_json(json);
    } else {
      print(json, "");
    }
    return 0;
  }

 private:
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_inspect_command() {
  return std::make_unique<InspectCommand>();
}

}  // namespace sdtune::app
