#include "model/lora/lora_hashes.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "model/files/sha256.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::model {
namespace {

TEST(LoraModelHash, IsOfTheBytesBehindTheHeader) {
  const test::ScratchFolder scratch;
  const NamedTensors tensors = {{"a", torch::ones({4})}, {"b", torch::zeros({2})}};
  std::map<std::string, std::string> metadata;
  add_lora_hashes(tensors, metadata);
  const std::string hash = metadata.at("sshs_model_hash");
  const auto path = scratch.path() / "me.safetensors";
  write_safetensors(real_file_system(), path, tensors, std::nullopt, {{"note", "another header"}});
  EXPECT_EQ(lora_model_hash(path), hash);
  EXPECT_NE(sha256_of_file(path), hash);
}

// A1111 takes what the header says at its word. What is no hash would break the line that it is written into.
TEST(LoraModelHash, IsWhatTheHeaderSaysWhereThatIsAHash) {
  const test::ScratchFolder scratch;
  const NamedTensors tensors = {{"a", torch::ones({4})}};
  const auto path = scratch.path() / "me.safetensors";
  const std::string said(64, 'a');
  write_safetensors(real_file_system(), path, tensors, std::nullopt, {{"sshs_model_hash", said}});
  EXPECT_EQ(lora_model_hash(path), said);
  write_safetensors(real_file_system(), path, tensors, std::nullopt, {{"sshs_model_hash", "x\nSteps: 1"}});
  const std::string computed = lora_model_hash(path);
  EXPECT_EQ(computed.size(), 64u);
  EXPECT_NE(computed, said);
}

}  // namespace
}  // namespace sdtune::model
