#include "model/machine/control_groups.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace sdtune::model {
namespace {

// Version 1 says so for "no limit": the highest number of whole pages.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

// "4:cpu,cpuacct:/job/step" and, of version 2, "0::/job/step" -> "/job/step"; "" where there is no such line.
std::string group_of(const SystemFiles& files, const std::string& controller) {
  std::istringstream lines(files.text("proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t names = line.find(':'), path = names == std::string::npos ? names : line.find(':', names + 1);
    if (path == std::string::npos) continue;
    const std::string listed = "," + line.substr(names + 1, path - names - 1) + ",";
    if (listed.find("," + controller + ",") != std::string::npos) return line.substr(path + 1);
  }
  return "";
}

// The process's own group and those above. In a container the path may be the host's, of which only the last folder,
// the root, is there. `controller`: of version 1, or "" of version 2.
std::vector<std::string> group_folders(const SystemFiles& files, const std::string& controller) {
  const std::string root = "sys/fs/cgroup" + (controller.empty() ? "" : "/" + controller);
  std::vector<std::string> folders;
  std::filesystem::path group = group_of(files, controller);
  for (; group.has_relative_path(); group = group.parent_path()) folders.push_back(root + group.string());
  folders.push_back(root);
  return folders;
}

template <typename T>
void lower(std::optional<T>& least, T value) {
  least = least ? std::min(*least, value) : value;
}

std::int64_t anonymous_bytes(const SystemFiles& files, const std::string& folder, const std::string& name) {
  std::istringstream statistics(files.text(folder + "/memory.stat"));
  std::string found;
  std::int64_t value = 0;
  while (statistics >> found >> value) {
    if (found == name) return value;
  }
  return 0;
}

}  // namespace

std::optional<double> quota_of_cores(const SystemFiles& files) {
  std::optional<double> least;
  for (const std::string& folder : group_folders(files, "")) {
    std::istringstream both(files.text(folder + "/cpu.max"));
    double quota = 0, period = 0;
    if (both >> quota >> period && period > 0) lower(least, quota / period);
  }
  for (const std::string& folder : group_folders(files, "cpu")) {
    const auto quota = files.number(folder + "/cpu.cfs_quota_us");
    const auto period = files.number(folder + "/cpu.cfs_period_us");
    if (quota && period && *quota > 0 && *period > 0)
      lower(least, static_cast<double>(*quota) / static_cast<double>(*period));
  }
  return least;
}

std::optional<std::int64_t> memory_left(const SystemFiles& files) {
  std::optional<std::int64_t> least;
  const auto add = [&](const std::string& folder, const std::string& limit_file, const std::string& anonymous) {
    const auto limit = files.number(folder + "/" + limit_file);
    if (!limit || *limit >= kNoLimit) return;
    lower(least, std::max<std::int64_t>(0, *limit - anonymous_bytes(files, folder, anonymous)));
  };
  for (const std::string& folder : group_folders(files, "")) add(folder, "memory.max", "anon");
  for (const std::string& folder : group_folders(files, "memory")) add(folder, "memory.limit_in_bytes", "total_rss");
  return least;
}

}  // namespace sdtune::model
