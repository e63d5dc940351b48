// Every option of every command, for programs: `sdtune reference --json`.
#pragma once

#include <memory>
#include <vector>

#include "app/commands/command.h"
#include "model/base/json.h"

namespace sdtune::app {

// {COMMAND: {"summary", "usage", "words": [{"name", "help"}, ...], "options": [{"name", "type", "optional", "default",
// "choices", "min", "max", "exclusive_min", "unit", "group", "help", "placeholder", "aliases"}, ...]}, ...} of the
// commands that `sdtune --help` lists.
Json options_json(const std::vector<std::unique_ptr<Command>>& commands);

}  // namespace sdtune::app
