#include "train/dist/network_interfaces.h"

#include <ifaddrs.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>

namespace sdtune::train {

std::vector<std::string> gloo_interfaces() {
  const char* given = std::getenv("GLOO_SOCKET_IFNAME");
  std::istringstream names(given == nullptr ? "" : given);
  std::vector<std::string> interfaces;
  for (std::string name; std::getline(names, name, ',');) {
    if (!name.empty()) interfaces.push_back(name);
  }
  return interfaces;
}

std::vector<std::string> interfaces_with_address() {
  std::vector<std::string> names;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return names;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, freeifaddrs);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (std::find(names.begin(), names.end(), entry->ifa_name) == names.end()) names.emplace_back(entry->ifa_name);
  }
  return names;
}

}  // namespace sdtune::train
