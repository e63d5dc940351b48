#include "train/dist/slurm_nodelist.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

constexpr std::size_t kLongestList = 64 * 1024;
constexpr std::size_t kLongestHost = 253;  // RFC 1035's limit of a name
constexpr std::size_t kMostShown = 60;

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char sign) { return std::isdigit(sign); });
}

bool is_host_sign(unsigned char sign) {
  return std::isalnum(sign) || sign == '-' || sign == '.' || sign == '_';
}

// The first number of a bracket's content "01-04,7", as it is written; empty where the content is no list of ranges.
std::string_view first_number(std::string_view ranges) {
  std::string_view first;
  while (true) {
    const std::string_view range = ranges.substr(0, ranges.find(','));
    const std::size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    if (!is_digits(low)) return {};
    if (dash != std::string_view::npos && !is_digits(range.substr(dash + 1))) return {};
    if (first.empty()) first = low;
    if (range.size() == ranges.size()) return first;
    ranges.remove_prefix(range.size() + 1);
  }
}

// The number at the start of `text`, which loses it.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return value;
}

}  // namespace

std::string first_host(std::string_view nodelist, const std::string& variable) {
  const auto fault = [&](const std::string& why) {
    return ConfigError(
        variable, "is not a list of hosts: " + why + " (got '" + std::string(nodelist.substr(0, kMostShown)) + "')",
        "the environment variable is set by SLURM; MASTER_ADDR names the host of rank 0 instead");
  };
  if (nodelist.size() > kLongestList) throw fault("it is longer than 64 KiB");
  std::string host;
  for (std::size_t at = 0; at < nodelist.size() && nodelist[at] != ','; ++at) {
    if (nodelist[at] == '[') {
      const std::size_t end = nodelist.find(']', at);
      if (end == std::string_view::npos) throw fault("a bracket is not closed");
      const std::string_view number = first_number(nodelist.substr(at + 1, end - at - 1));
      if (number.empty()) throw fault("what is in brackets is not a list of numbers");
      host += number;
      at = end;
    } else if (is_host_sign(static_cast<unsigned char>(nodelist[at]))) {
      host += nodelist[at];
    } else {
      throw fault("a host name has no such character");
    }
  }
  if (host.empty()) throw fault("the first name is empty");
  if (host.size() > kLongestHost) throw fault("the first name is longer than 253 characters");
  if (host.front() == '-') throw fault("a host name does not begin with -");
  return host;
}

std::int64_t tasks_on_node(std::string_view tasks_per_node, std::int64_t node) {
  while (!tasks_per_node.empty()) {
    const std::optional<std::int64_t> tasks = take_number(tasks_per_node);
    if (!tasks) return 0;
    std::int64_t nodes = 1;
    if (tasks_per_node.starts_with("(x")) {
      tasks_per_node.remove_prefix(2);
      const std::optional<std::int64_t> given = take_number(tasks_per_node);
      if (!given || !tasks_per_node.starts_with(")")) return 0;
      tasks_per_node.remove_prefix(1);
      nodes = *given;
    }
    if (node < nodes) return *tasks;
    node -= nodes;
    if (!tasks_per_node.empty() && tasks_per_node.front() != ',') return 0;
    if (!tasks_per_node.empty()) tasks_per_node.remove_prefix(1);
  }
  return 0;
}

}  // namespace sdtune::train
