// Over which of a machine's networks Gloo sends.
#pragma once

#include <string>
#include <vector>

namespace sdtune::train {

// The names in GLOO_SOCKET_IFNAME, which commas separate as in PyTorch; none where it is not set.
std::vector<std::string> gloo_interfaces();

// The interfaces of this machine that have an address, each once.
std::vector<std::string> interfaces_with_address();

}  // namespace sdtune::train
