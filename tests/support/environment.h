// Environment variables of a test, as they were before when it ends.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sdtune::test {

class Environment {
 public:
  Environment() = default;
  Environment(const std::string& name, const std::string& value) { set(name, value); }
  ~Environment() {
    for (auto item = saved_.rbegin(); item != saved_.rend(); ++item) {
      if (item->second) {
        ::setenv(item->first.c_str(), item->second->c_str(), 1);
      } else {
        ::unsetenv(item->first.c_str());
      }
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  void set(const std::string& name, const std::string& value) {
    save(name);
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  void unset(const std::string& name) {
    save(name);
    ::unsetenv(name.c_str());
  }

 private:
  void save(const std::string& name) {
    const char* old = std::getenv(name.c_str());
    saved_.emplace_back(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
  }

  std::vector<std::pair<std::string, std::optional<std::string>>> saved_;
};

}  // namespace sdtune::test
