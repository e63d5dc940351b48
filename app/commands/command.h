// One subcommand: says what it takes, then does it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/arguments.h"
#include "app/cli/help_text.h"
#include "model/options/field.h"
#include "model/options/preset.h"

namespace sdtune::app {

class Command {
 public:
  virtual ~Command() = default;
  virtual CommandHelp help() const = 0;
  // Every option, pointing into this object; holds the defaults until run().
  virtual FieldList fields() = 0;
  // For help: the presets that set defaults of fields(); none for a command that does not train.
  virtual std::vector<Preset> presets() const { return {}; }
  // Whether the words behind `--` are a command of their own, and go to Arguments::command as they are.
  virtual bool takes_command() const { return false; }
  // For completion: placeholders of the words that are no flags, in their order, "bash|zsh|fish" for a choice.
  virtual std::vector<std::string> positionals() const { return {}; }
  // With takes_command(): the command whose options these words are; empty where they begin with a command.
  virtual std::string rest_of() const { return ""; }
  // Not listed in `sdtune --help`: for our own scripts.
  virtual bool hidden() const { return false; }
  // Does the work and returns the exit code. Takes `arguments` with its problems, to report them with those it finds.
  // Throws the types of model/base/error.h.
  virtual int run(Arguments arguments) = 0;
};

std::unique_ptr<Command> make_train_command();
std::unique_ptr<Command> make_sample_command();
std::unique_ptr<Command> make_demo_command();
std::unique_ptr<Command> make_check_command();
std::unique_ptr<Command> make_doctor_command();
std::unique_ptr<Command> make_prepare_command();
std::unique_ptr<Command> make_plan_command();
std::unique_ptr<Command> make_prove_command();
std::unique_ptr<Command> make_prove_piece_command();
std::unique_ptr<Command> make_inspect_command();
std::unique_ptr<Command> make_render_command();
std::unique_ptr<Command> make_pretrain_command();
std::unique_ptr<Command> make_eval_command();
std::unique_ptr<Command> make_convert_command();
std::unique_ptr<Command> make_merge_command();
std::unique_ptr<Command> make_fetch_command();
std::unique_ptr<Command> make_push_command();
std::unique_ptr<Command> make_tune_machine_command();
std::unique_ptr<Command> make_launch_command();
std::unique_ptr<Command> make_schema_command();
std::unique_ptr<Command> make_completion_command();
std::unique_ptr<Command> make_reference_command();

// Every command, in the order of `sdtune --help`.
std::vector<std::unique_ptr<Command>> make_commands();

// Runs what the words after the program's name ask for; returns the exit code.
int run_command_line(const std::vector<std::string>& words);

}  // namespace sdtune::app
