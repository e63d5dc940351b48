#include "tests/gpu/recorded/contents.h"

#include <map>
#include <mutex>

namespace sdtune::record {

namespace {

std::mutex mutex;

std::map<const void*, std::vector<char>>& contents() {
  static auto& all = *new std::map<const void*, std::vector<char>>;
  return all;
}

}  // namespace

void keep_contents(const void* address, const void* bytes, std::size_t count) {
  if (count > kMostBytes) return;
  const std::lock_guard lock(mutex);
  const auto* begin = static_cast<const char*>(bytes);
  contents()[address].assign(begin, begin + count);
}

std::vector<char> contents_of(const void* address) {
  const std::lock_guard lock(mutex);
  const auto found = contents().find(address);
  return found == contents().end() ? std::vector<char>() : found->second;
}

}  // namespace sdtune::record
