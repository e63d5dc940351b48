#include "model/pipeline/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "model/base/error.h"
#include "model/files/json_file.h"
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

// A module that was cast to half precision has lost what its file still holds.
TEST_P(Bundle, CopiesTheFilesOfPartsThatNothingChanged) {
  save();
  ModelBundle cast = load_bundle(folder(), torch::kFloat32, torch::kCPU);
  cast.vae->to(torch::kBFloat16);
  cast.text_encoder->to(torch::kBFloat16);
  const fs::path to = scratch_.path() / "exported";
  save_bundle(real_file_system(), cast, to, torch::kFloat32, {.unchanged = {"vae", "text_encoder"}});
  for (const char* name : {"vae/diffusion_pytorch_model.safetensors", "vae/config.json",
                           "text_encoder/model.safetensors", "text_encoder/config.json"}) {
    EXPECT_EQ(read_file(to / name), read_file(folder() / name)) << name;
  }
  save_bundle(real_file_system(), cast, to, torch::kFloat32);  // the mutant: written from the modules
  EXPECT_NE(read_file(to / "text_encoder/model.safetensors"), read_file(folder() / "text_encoder/model.safetensors"));
}

// Loaders want one dtype for all parts; every value is what the file holds.
TEST_P(Bundle, WritesUnchangedPartsOfAnotherDtypeAsTheirFilesHaveThem) {
  save_bundle(real_file_system(), bundle_, folder(), torch::kFloat16);
  ModelBundle cast = load_bundle(folder(), torch::kBFloat16, torch::kCPU);
  const fs::path to = scratch_.path() / "exported";
  save_bundle(real_file_system(), cast, to, torch::kFloat32, {.unchanged = {"vae", "text_encoder"}});
  const SafetensorsFile file(to / "vae" / "diffusion_pytorch_model.safetensors");
  EXPECT_EQ(file.header().tensors.begin()->second.dtype, "F32");
  EXPECT_TRUE(same_weights(*load(to).vae, *load(folder()).vae));
  EXPECT_TRUE(same_weights(*load(to).text_encoder, *load(folder()).text_encoder));
  EXPECT_FALSE(same_weights(*load(to).unet, *load(folder()).unet));  // the mutant: written from the module
}

TEST_P(Bundle, CopiesVariantsUnderThePlainName) {
  save();
  const fs::path vae = folder() / "vae";
  fs::rename(vae / "diffusion_pytorch_model.safetensors", vae / "diffusion_pytorch_model.fp16.safetensors");
  const ModelBundle loaded = load_bundle(folder(), torch::kFloat32, torch::kCPU);
  const fs::path to = scratch_.path() / "exported";
  save_bundle(real_file_system(), loaded, to, torch::kFloat32, {.unchanged = {"vae"}});
  EXPECT_EQ(read_file(to / "vae/diffusion_pytorch_model.safetensors"),
            read_file(vae / "diffusion_pytorch_model.fp16.safetensors"));
  EXPECT_TRUE(same_weights(*load_bundle(to, torch::kFloat32, torch::kCPU).vae, *loaded.vae));
}

TEST_P(Bundle, CopiesShards) {
  save();
  const fs::path vae = folder() / "vae", whole = vae / "diffusion_pytorch_model.safetensors";
  NamedTensors first, second;
  Json index = {{"metadata", Json::object()}, {"weight_map", Json::object()}};
  {
    const SafetensorsFile file(whole);
    for (const auto& [name, entry] : file.header().tensors) {
      const bool is_first = first.size() <= second.size();
      (is_first ? first : second).emplace_back(name, file.tensor(name).clone());
      index["weight_map"][name] = is_first ? "part-1.safetensors" : "part-2.safetensors";
    }
  }
  write_safetensors(real_file_system(), vae / "part-1.safetensors", first);
  write_safetensors(real_file_system(), vae / "part-2.safetensors", second);
  scratch_.write((vae / "diffusion_pytorch_model.safetensors.index.json").lexically_relative(scratch_.path()).string(),
                 index.dump());
  fs::remove(whole);
  const ModelBundle loaded = load_bundle(folder(), torch::kFloat32, torch::kCPU);
  const fs::path to = scratch_.path() / "exported";
  save_bundle(real_file_system(), loaded, to, torch::kFloat32, {.unchanged = {"vae"}});
  for (const char* name :
       {"part-1.safetensors", "part-2.safetensors", "diffusion_pytorch_model.safetensors.index.json"}) {
    EXPECT_EQ(read_file(to / "vae" / name), read_file(vae / name)) << name;
  }
  EXPECT_TRUE(same_weights(*load_bundle(to, torch::kFloat32, torch::kCPU).vae, *loaded.vae));
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
  const Json scheduler = read_json(folder() / "model_index.json")["scheduler"];
  set("model_index.json", "scheduler", Json::array({"diffusers", "KDPM2DiscreteScheduler"}));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model_index.json: scheduler"), HasSubstr("got KDPM2DiscreteScheduler")));
  set("model_index.json", "scheduler", scheduler);
  set("scheduler/scheduler_config.json", "beta_schedule", "sawtooth");
  EXPECT_THAT(refusal(), HasSubstr("scheduler_config.json: beta_schedule"));
  set("scheduler/scheduler_config.json", "beta_schedule", "linear");
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
