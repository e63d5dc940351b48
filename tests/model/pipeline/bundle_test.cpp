#include "model/pipeline/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "model/base/error.h"
#include "model/weights/safetensors_file.h"
#include "model/weights/safetensors_writer.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_bundle.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;
using test::Fault;
using test::FaultyFileSystem;
using test::make_tiny_bundle;
using test::ScratchFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

ModelBundle load(const fs::path& folder) {
  return load_bundle(folder, torch::kFloat32, torch::kCPU);
}

bool same_weights(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto left = a.named_parameters();
  const auto right = b.named_parameters();
  if (left.size() != right.size()) return false;
  for (const auto& item : left) {
    const torch::Tensor* other = right.find(item.key());
    if (other == nullptr || !torch::equal(item.value(), *other)) return false;
  }
  return true;
}

class Bundle : public ::testing::TestWithParam<bool> {
 protected:
  Bundle() : bundle_(make_tiny_bundle(scratch_, GetParam())) {}
  fs::path folder() const { return scratch_.path() / "model"; }
  void save(FileSystem& files = real_file_system()) const { save_bundle(files, bundle_, folder(), torch::kFloat32); }

  ScratchFolder scratch_;
  ModelBundle bundle_;
};

INSTANTIATE_TEST_SUITE_P(Families, Bundle, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "SDXL" : "SD"; });

TEST_P(Bundle, ComesBackAsItWasSaved) {
  save();
  const ModelBundle loaded = load(folder());
  EXPECT_EQ(loaded.pipeline_class, bundle_.pipeline_class);
  EXPECT_EQ(loaded.scheduler_class, bundle_.scheduler_class);
  EXPECT_EQ(loaded.scheduler_config.dump(), bundle_.scheduler_config.dump());
  EXPECT_EQ(loaded.force_zeros_for_empty_prompt, bundle_.force_zeros_for_empty_prompt);
  EXPECT_EQ(loaded.folder, folder());
  EXPECT_EQ(loaded.unet->config(), bundle_.unet->config());
  EXPECT_EQ(loaded.vae->config(), bundle_.vae->config());
  EXPECT_EQ(loaded.text_encoder->config(), bundle_.text_encoder->config());
  EXPECT_TRUE(same_weights(*loaded.unet, *bundle_.unet));
  EXPECT_TRUE(same_weights(*loaded.vae, *bundle_.vae));
  EXPECT_TRUE(same_weights(*loaded.text_encoder, *bundle_.text_encoder));
  EXPECT_EQ(static_cast<bool>(loaded.text_encoder_2), bundle_.is_xl());
  if (bundle_.is_xl()) {
    EXPECT_TRUE(same_weights(*loaded.text_encoder_2, *bundle_.text_encoder_2));
  }
  EXPECT_EQ(loaded.tokenizer("ab").ids, bundle_.tokenizer("ab").ids);
  EXPECT_EQ(loaded.tokenizer_2.has_value(), bundle_.is_xl());
}

TEST_P(Bundle, SavesTheSameBytesTwice) {
  save();
  const std::string first = read_file(folder() / "unet" / "diffusion_pytorch_model.safetensors");
  save();
  EXPECT_EQ(read_file(folder() / "unet" / "diffusion_pytorch_model.safetensors"), first);
}

TEST_P(Bundle, IsCastWhenSavedAndWhenLoaded) {
  save_bundle(real_file_system(), bundle_, folder(), torch::kFloat16);
  const SafetensorsFile file(folder() / "vae" / "diffusion_pytorch_model.safetensors");
  EXPECT_EQ(file.header().tensors.begin()->second.dtype, "F16");
  const ModelBundle loaded = load_bundle(folder(), torch::kBFloat16, torch::kCPU);
  EXPECT_EQ(loaded.dtype(), torch::kBFloat16);
  for (const torch::Tensor& weight : loaded.text_encoder->parameters()) {
    EXPECT_EQ(weight.scalar_type(), torch::kBFloat16);
    EXPECT_TRUE(weight.requires_grad());
  }
}

TEST_P(Bundle, LeavesNothingBesideIt) {
  save();
  save();
  for (const fs::directory_entry& entry : fs::directory_iterator(scratch_.path())) {
    EXPECT_NE(entry.path().filename().string().front(), '.') << entry.path();
  }
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder())) {
    EXPECT_NE(entry.path().filename().string().front(), '.') << entry.path();
  }
}

// Every file of a folder, by name.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder).string()] = read_file(entry.path());
  }
  return files;
}

// Saves over an older model with a fault at every operation: what lies at the name afterwards is the old model or the
// new one, whole. Only a kill between the two renames leaves the old one aside, as bundle.h says.
TEST(BundleSave, IsOldOrNewAtEveryFault) {
  const ScratchFolder scratch;
  ModelBundle bundle = make_tiny_bundle(scratch, false);
  const fs::path folder = scratch.path() / "model";
  const fs::path old_copy = scratch.path() / "old_copy";
  const auto save = [&](FileSystem& files) { save_bundle(files, bundle, folder, torch::kFloat32); };
  save(real_file_system());
  fs::rename(folder, old_copy);
  const auto old_files = contents(old_copy);
  for (torch::Tensor weight : bundle.unet->parameters()) weight.set_data(torch::ones_like(weight));
  fs::copy(old_copy, folder, fs::copy_options::recursive);
  FaultyFileSystem counter;
  save(counter);
  const auto new_files = contents(folder);
  ASSERT_NE(old_files, new_files);
  ASSERT_GT(counter.operations(), 40U);
  for (const Fault fault : {Fault::kFailOnce, Fault::kKillInside}) {
    for (const std::size_t at : counter.milestones(32)) {
      fs::remove_all(folder);
      fs::copy(old_copy, folder, fs::copy_options::recursive);
      FaultyFileSystem files(fault, at);
      try {
        save(files);
      } catch (const StorageError&) {
      } catch (const test::SimulatedKill&) {
      }
      const fs::path aside = scratch.path() / ".model.old";
      const auto found = contents(fs::exists(folder) ? folder : aside);
      EXPECT_TRUE(found == old_files || found == new_files) << at;
      EXPECT_TRUE(fault == Fault::kKillInside || fs::exists(folder)) << at;
      EXPECT_FALSE(fault == Fault::kFailOnce && fs::exists(scratch.path() / ".model.partial")) << at;
    }
  }
}

class BrokenBundle : public ::testing::Test {
 protected:
  BrokenBundle() { save_bundle(real_file_system(), make_tiny_bundle(scratch_, false), folder(), torch::kFloat32); }
  fs::path folder() const { return scratch_.path() / "model"; }
  // Changes one key of a JSON file of the model.
  void set(const std::string& file, const std::string& key, const Json& value) const {
    Json json = read_json(folder() / file);
    json[key] = value;
    scratch_.write("model/" + file, json.dump());
  }
  std::string refusal() const {
    try {
      load(folder());
    } catch (const WeightError& error) {
      return error.what();
    }
    return "was accepted";
  }

  ScratchFolder scratch_;
};

TEST_F(BrokenBundle, NamesTheFileThatIsMissing) {
  for (const char* file : {"model_index.json", "scheduler/scheduler_config.json", "unet/config.json", "vae/config.json",
                           "text_encoder/config.json", "unet/diffusion_pytorch_model.safetensors",
                           "text_encoder/model.safetensors", "tokenizer/vocab.json"}) {
    const std::string content = read_file(folder() / file);
    fs::remove(folder() / file);
    EXPECT_THAT(refusal(), HasSubstr(fs::path(file).filename().string())) << file;
    scratch_.write(std::string("model/") + file, content);
  }
  load(folder());
}

TEST_F(BrokenBundle, NamesTheKeyThatIsNotSupported) {
  set("model_index.json", "_class_name", "FluxPipeline");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("FluxPipeline"), HasSubstr("allowed: StableDiffusionPipeline")));
  set("model_index.json", "_class_name", "StableDiffusionPipeline");
  set("model_index.json", "unet", Json::array({"diffusers", "UNet3DConditionModel"}));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("unet"), HasSubstr("UNet3DConditionModel")));
  set("model_index.json", "unet", Json::array({"diffusers", "UNet2DConditionModel"}));
  set("model_index.json", "controlnet", Json::array({"diffusers", "ControlNetModel"}));
  EXPECT_THAT(refusal(), HasSubstr("controlnet"));
}

TEST_F(BrokenBundle, NamesPartsThatDoNotBelongTogether) {
  set("unet/config.json", "cross_attention_dim", 16);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("cross_attention_dim"), HasSubstr("got 16; allowed: 8")));
  set("unet/config.json", "cross_attention_dim", 8);
  set("unet/config.json", "in_channels", 9);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("in_channels"), HasSubstr("inpainting")));
  set("unet/config.json", "in_channels", 4);
  set("text_encoder/config.json", "vocab_size", 5);
  EXPECT_THAT(refusal(), HasSubstr("more tokens than its text encoder knows"));
  set("text_encoder/config.json", "vocab_size", 6);
  set("tokenizer/tokenizer_config.json", "model_max_length", 99);
  EXPECT_THAT(refusal(), HasSubstr("model_max_length"));
}

TEST_F(BrokenBundle, NamesTensorsThatAreMissingOrOfAnotherShape) {
  const fs::path path = folder() / "unet" / "diffusion_pytorch_model.safetensors";
  NamedTensors tensors;
  {
    const SafetensorsFile file(path);
    for (const auto& [name, entry] : file.header().tensors) tensors.emplace_back(name, file.tensor(name).clone());
  }
  const torch::Tensor first = tensors.front().second;
  tensors.front().second = torch::ones({3});
  write_safetensors(real_file_system(), path, tensors);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("1 of a wrong shape"), HasSubstr(tensors.front().first)));
  const std::string name = tensors.front().first;
  tensors.erase(tensors.begin());
  write_safetensors(real_file_system(), path, tensors);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("1 tensors missing"), HasSubstr(name), HasSubstr("unet")));
}

}  // namespace
}  // namespace sdtune::model
