// `sdtune schema`: configs/train.schema.json, from the options of train.
#include <cstdio>

#include "app/commands/command.h"
#include "model/base/error.h"
#include "train/config/config_schema.h"

namespace sdtune::app {
namespace {

class SchemaCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"schema", "Prints the JSON Schema of the configuration file, for editors of YAML.",
            "sdtune schema > train.schema.json"};
  }
  FieldList fields() override { return {}; }

  int run(Arguments arguments) override {
    refuse_words(arguments);
    std::puts(train::config_schema().dump(2).c_str());
    return 0;
  }

 private:
  static void refuse_words(Arguments& arguments) {
    for (const std::string& word : arguments.positionals) {
      arguments.problems.push_back({word, "unexpected word", "sdtune schema takes none"});
    }
    if (!arguments.problems.empty()) throw ConfigError(arguments.problems);
  }
};

}  // namespace

std::unique_ptr<Command> make_schema_command() {
  return std::make_unique<SchemaCommand>();
}

}  // namespace sdtune::app
