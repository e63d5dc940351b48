// SLURM's short form of a list of hosts, and of the tasks on each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sdtune::train {

// The first host of "node[01-04,7],login1": "node01". Several brackets in a name are allowed, leading zeros stay.
// Throws ConfigError naming `variable` for an empty list, a bracket that is not closed, an empty range, a character
// that no host name has, or more than 64 KiB.
std::string first_host(std::string_view nodelist, const std::string& variable);

// Tasks on node number `node` of "2(x3),1": of four nodes the first three have 2. 0 where the text is not of that form
// or has no such node.
std::int64_t tasks_on_node(std::string_view tasks_per_node, std::int64_t node);

}  // namespace sdtune::train
