// InfiniBand and RoCE: /sys/class/infiniband/DEVICE/ports/N/{state,rate,link_layer}, /dev/infiniband/uverbsN.
#include "model/machine/verbs_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace sdtune::model {
namespace {

struct Port {
  std::string text;  // "mlx5_0:1 InfiniBand 400 Gb/sec (4X NDR), ACTIVE"
  bool is_active = false;
};

std::vector<Port> find_ports(const SystemFiles& files) {
  std::vector<Port> ports;
  const std::string root = "sys/class/infiniband";
  for (const std::string& device : files.names(root)) {
    const std::string folder = root + "/" + device + "/ports";
    for (const std::string& number : files.names(folder)) {
      const std::string port = folder + "/" + number + "/";
      const std::string state = files.text(port + "state");  // "4: ACTIVE"
      const std::size_t colon = state.find(": ");
      const std::string word = colon == std::string::npos ? state : state.substr(colon + 2);
      ports.push_back({fmt::format("{}:{} {} {}, {}", device, number, files.text(port + "link_layer"),
                                   files.text(port + "rate"), word),
                       word == "ACTIVE"});
    }
  }
  return ports;
}

bool has_device_file(const SystemFiles& files) {
  const std::vector<std::string> names = files.names("dev/infiniband");
  return std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.starts_with("uverbs"); });
}

}  // namespace

MachineCheck check_verbs(const SystemFiles& files, const ProcessFacts& facts) {
  MachineCheck check{.name = "verbs"};
  const std::vector<Port> ports = find_ports(files);
  if (ports.empty()) {
    check.found = "no InfiniBand or RoCE device: ranks on several machines use TCP";
    return check;
  }
  for (const Port& port : ports) check.found += (check.found.empty() ? "" : "; ") + port.text;
  check.status = CheckStatus::kWarn;
  if (!has_device_file(files)) {
    check.advice =
        "/dev/infiniband is missing here, and NCCL uses TCP: start the container with --device=/dev/infiniband";
  } else if (std::none_of(ports.begin(), ports.end(), [](const Port& port) { return port.is_active; })) {
    check.advice = "no port is active, and NCCL uses TCP: look at cable, switch and subnet manager";
  } else if (facts.locked_memory != kUnlimited) {
    check.advice = fmt::format(
        "only {} may be locked, and NCCL fails to register memory: ulimit -l unlimited, in a container "
        "--ulimit memlock=-1",
        gibibytes_text(facts.locked_memory));
  } else {
    check.status = CheckStatus::kOk;
  }
  return check;
}

}  // namespace sdtune::model
