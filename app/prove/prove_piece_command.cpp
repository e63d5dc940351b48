// `sdtune prove-piece`: a piece of a part of `prove`, in a process of its own; `prove` runs it.
#include <cstdint>
#include <string>

#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/commands/training_arguments.h"
#include "model/options/option_group.h"
#include "train/portrait/evaluate/classifier_reader_source.h"
#include "train/prove/piece.h"

namespace sdtune::app {
namespace {

class ProvePieceCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"prove-piece", "A piece of sdtune prove, which runs it.",
            "sdtune prove-piece --piece KIND --config FILE.yaml [--record FILE] [--result FILE]"};
  }
  FieldList fields() override { return options_.fields(own_fields()); }
  bool hidden() const override { return true; }

  int run(Arguments arguments) override {
    options_.load(arguments, own_fields());
    if (!options_.loaded.problems.empty()) throw ConfigError(options_.loaded.problems);
    const StopFlag& stop = stop_flag();  // no handler: SIGTERM ends it at once, since it saves nothing
    train::run_piece({kind_, options_.loaded.config, record_, result_, count_},
                     train::evaluate::classifier_reader_source(), stop);
    return 0;
  }

 private:
  FieldList own_fields() {
    FieldList list;
    OptionGroup group(list, "Piece");
    group.add("piece", &kind_, "What to do.").choices({"kernels", "steps", "reference"});
    group.add("record", &record_, "File of recorded steps, without suffix.").placeholder("FILE");
    group.add("result", &result_, "JSON file for the checks.").placeholder("FILE");
    group.add("count", &count_, "Steps to record.").range(1, 100).unit("steps");
    return list;
  }

  std::string kind_ = "kernels", record_, result_;
  std::int64_t count_ = 3;
  TrainingArguments options_;
};

}  // namespace

std::unique_ptr<Command> make_prove_piece_command() {
  return std::make_unique<ProvePieceCommand>();
}

}  // namespace sdtune::app
