// Runs the fuzzer's target on files with bytes changed, cut out, repeated and put together anew: the same every time.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/model/pickle/archive_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace sdtune {
namespace {

using test::archive_of;
using test::mapping;
using test::number;
using test::tensor;
using test::text;

constexpr int kRounds = 20'000;
constexpr std::size_t kLongest = 4096;

std::string mutated(std::string bytes, const std::string& other, std::mt19937& random) {
  const auto below = [&](std::size_t count) { return count == 0 ? 0 : random() % count; };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(bytes.size()), length = below(24);
    switch (below(5)) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, bytes.substr(below(bytes.size()), length));
        break;
      case 3:
        bytes.insert(at, other.substr(below(other.size()), length));
        break;
      default:
        bytes.replace(at, length, length, below(2) == 0 ? '\xFF' : '\0');
    }
  }
  return bytes.substr(0, kLongest);
}

void feed(const std::string& file) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
}

std::vector<std::string> pickles() {
  const std::string parameter = "ctorch._utils\n_rebuild_parameter\n(" + tensor({2}, {1}) + "\x88}tR";
  const std::string ordered = "ccollections\nOrderedDict\n)R(" + text("w") + tensor({2, 2}, {1, 2}) + "u}b";
  return {mapping(text("w") + tensor({2, 2}, {2, 1}) + text("p") + parameter),
          mapping(text("epoch") + number(3) + text("state_dict") + ordered),
          mapping(text("list") +
                  "](NK\x01"
                  "e" +
                  text("w") + tensor({1}, {0}, 3))};
}

// The zip file around them is mutated: its directory, sizes and offsets.
TEST(TorchArchiveFuzz, FilesWithChangedBytes) {
  std::mt19937 random(1);
  const std::vector<std::string> contents = pickles();
  for (int round = 0; round < kRounds; ++round) {
    const std::string file =
        archive_of(contents[random() % contents.size()], std::string(16, 's'), {.zip64 = random() % 2 == 0});
    feed(mutated(file, archive_of(contents[0]), random));
  }
}

// The pickle is mutated inside a right zip file: its opcodes, memory and tensors.
TEST(TorchArchiveFuzz, PicklesWithChangedOpcodes) {
  std::mt19937 random(2);
  std::vector<std::string> grown = pickles();
  for (int round = 0; round < kRounds; ++round) {
    std::string pickle = mutated(grown[random() % grown.size()], grown[random() % grown.size()], random);
    feed(archive_of(pickle));
    if (round % 100 == 0) grown.push_back(std::move(pickle));
  }
}

}  // namespace
}  // namespace sdtune
