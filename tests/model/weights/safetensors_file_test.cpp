#include "model/weights/safetensors_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "model/base/error.h"
#include "model/weights/safetensors_writer.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::model {
namespace {

using test::Fault;
using test::FaultyFileSystem;
using test::ScratchFolder;

constexpr torch::Dtype kAllDtypes[] = {torch::kFloat64, torch::kFloat32, torch::kFloat16, torch::kBFloat16,
                                       torch::kInt64,   torch::kInt32,   torch::kInt16,   torch::kInt8,
                                       torch::kUInt8,   torch::kBool};

void expect_same(const torch::Tensor& a, const torch::Tensor& b) {
  EXPECT_EQ(a.scalar_type(), b.scalar_type());
  EXPECT_EQ(a.sizes(), b.sizes());
  EXPECT_TRUE(torch::equal(a, b));
}

TEST(Safetensors, EveryDtypeComesBackAsItWas) {
  const ScratchFolder scratch;
  NamedTensors tensors;
  for (const torch::Dtype dtype : kAllDtypes) {
    tensors.emplace_back(safetensors_name(dtype), torch::arange(6).reshape({2, 3}).to(dtype));
    EXPECT_EQ(dtype_of_safetensors(safetensors_name(dtype)), dtype);
  }
  tensors.emplace_back("scalar", torch::tensor(2.5F));
  tensors.emplace_back("nothing", torch::empty({0, 4}));
  tensors.emplace_back("transposed", torch::arange(6).reshape({2, 3}).t());
  const auto path = scratch.path() / "w.safetensors";
  write_safetensors(real_file_system(), path, tensors);
  const SafetensorsFile file(path);
  EXPECT_EQ(file.header().tensors.size(), tensors.size());
  EXPECT_EQ(file.header().metadata.at("format"), "pt");
  for (const auto& [name, tensor] : tensors) expect_same(file.tensor(name), tensor);
}

TEST(Safetensors, TensorsOutliveTheFileObjectWithoutACopy) {
  const ScratchFolder scratch;
  const auto path = scratch.path() / "w.safetensors";
  write_safetensors(real_file_system(), path, {{"a", torch::arange(1000)}});
  std::optional<SafetensorsFile> file(path);
  const torch::Tensor first = file->tensor("a");
  EXPECT_EQ(first.const_data_ptr(), file->tensor("a").const_data_ptr());
  file.reset();
  std::filesystem::remove(path);
  EXPECT_TRUE(torch::equal(first, torch::arange(1000)));
}

TEST(Safetensors, ReleasedTensorsAreReadAgain) {
  const ScratchFolder scratch;
  const auto path = scratch.path() / "w.safetensors";
  write_safetensors(real_file_system(), path, {{"a", torch::arange(10'000)}, {"b", torch::empty({0})}});
  const SafetensorsFile file(path);
  const torch::Tensor tensor = file.tensor("a");
  file.release("a");
  file.release("b");
  EXPECT_TRUE(torch::equal(tensor, torch::arange(10'000)));
}

TEST(Safetensors, TheSameTensorsGiveTheSameBytesInAnyOrder) {
  const ScratchFolder scratch;
  const NamedTensors one = {{"b", torch::ones(3)}, {"a", torch::zeros(2)}};
  const NamedTensors two = {{"a", torch::zeros(2)}, {"b", torch::ones(3)}};
  write_safetensors(real_file_system(), scratch.path() / "1", one);
  write_safetensors(real_file_system(), scratch.path() / "2", two);
  EXPECT_EQ(read_file(scratch.path() / "1"), read_file(scratch.path() / "2"));
}

TEST(Safetensors, CastsFloatingTensorsOnTheWay) {
  const ScratchFolder scratch;
  const auto path = scratch.path() / "w.safetensors";
  const torch::Tensor values = torch::randn({5, 7});
  write_safetensors(real_file_system(), path, {{"w", values}, {"ids", torch::arange(4)}}, torch::kBFloat16);
  const SafetensorsFile file(path);
  expect_same(file.tensor("w"), values.to(torch::kBFloat16));
  expect_same(file.tensor("ids"), torch::arange(4));
}

// A writer that did not pad its header leaves tensors at odd addresses.
TEST(Safetensors, ReadsTensorsThatAreNotAligned) {
  const ScratchFolder scratch;
  const std::string json = R"({"p":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                           R"("w":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})";
  std::string content(8, '\0');
  content[0] = static_cast<char>(json.size());
  content += json + "x";
  const float values[] = {1.5F, -2.0F};
  content.append(reinterpret_cast<const char*>(values), sizeof(values));
  const SafetensorsFile file(scratch.write("odd.safetensors", content));
  expect_same(file.tensor("w"), torch::tensor({1.5F, -2.0F}));
}

TEST(Safetensors, IsWrittenWholeOrNotAtAll) {
  const NamedTensors tensors = {{"a", torch::arange(100)}, {"b", torch::ones(50)}};
  const ScratchFolder reference;
  FaultyFileSystem counter;
  write_safetensors(counter, reference.path() / "w", tensors);
  const std::string whole = read_file(reference.path() / "w");
  for (const Fault fault : {Fault::kFailOnce, Fault::kFailOnward, Fault::kKillInside, Fault::kKillAfter}) {
    for (std::size_t at = 0; at < counter.operations(); ++at) {
      const ScratchFolder scratch;
      const auto path = scratch.write("w", "old");
      FaultyFileSystem files(fault, at);
      try {
        write_safetensors(files, path, tensors);
      } catch (const StorageError&) {
      } catch (const test::SimulatedKill&) {
      }
      const std::string content = read_file(path);
      EXPECT_TRUE(content == "old" || content == whole) << at;
    }
  }
}

}  // namespace
}  // namespace sdtune::model
