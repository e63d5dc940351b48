#include "model/base/nearest_name.h"

#include <algorithm>
#include <utility>

namespace sdtune {
namespace {

bool same_letter(char a, char b) {
  return (a == '-' ? '_' : a) == (b == '-' ? '_' : b);
}

// Optimal string alignment: insertions, deletions, replacements and swaps of neighbours count one each.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t replaced = cost[i - 1][j - 1] + (same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1])) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

bool same_name(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_letter);
}

std::string nearest_name(const std::string& name, const std::vector<std::string>& known) {
  constexpr std::size_t kLongestCompared = 256;  // the distance is quadratic, and no option is that long
  if (name.size() > kLongestCompared) return "";
  const std::size_t allowed = std::max<std::size_t>(2, name.size() / 3);
  std::string nearest;
  std::size_t smallest = allowed + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < smallest) {
      smallest = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace sdtune
