#include "model/weights/tensor_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "model/base/error.h"
#include "model/weights/safetensors_writer.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TensorSourceOfAPart : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(part()); }
  fs::path part() const { return scratch_.path() / "model" / "unet"; }
  void write(const std::string& name, const NamedTensors& tensors) const {
    write_safetensors(real_file_system(), part() / name, tensors);
  }
  void write_index(const std::string& weight_map) const {
    scratch_.write("model/unet/w.safetensors.index.json", R"({"metadata":{},"weight_map":)" + weight_map + "}");
  }
  TensorSource open() const { return TensorSource::of_part(part(), "w"); }
  std::string refusal() const {
    try {
      open();
    } catch (const WeightError& error) {
      return error.what();
    }
    return "was accepted";
  }

  test::ScratchFolder scratch_;
};

TEST_F(TensorSourceOfAPart, ReadsOneFile) {
  write("w.safetensors", {{"a", torch::ones(2)}});
  EXPECT_THAT(open().names(), ElementsAre("a"));
  EXPECT_TRUE(torch::equal(open().tensor("a"), torch::ones(2)));
}

TEST_F(TensorSourceOfAPart, ReadsShards) {
  write("w-1.safetensors", {{"a", torch::ones(2)}});
  write("w-2.safetensors", {{"b", torch::zeros(3)}, {"c", torch::zeros(1)}});
  write_index(R"({"a":"w-1.safetensors","b":"w-2.safetensors","c":"w-2.safetensors"})");
  EXPECT_THAT(open().names(), ElementsAre("a", "b", "c"));
}

TEST_F(TensorSourceOfAPart, TakesTheHalfPrecisionVariantOnlyWhereThePlainOneIsMissing) {
  write("w.fp16.safetensors", {{"half", torch::ones(2)}});
  EXPECT_THAT(open().names(), ElementsAre("half"));
  write("w.safetensors", {{"plain", torch::ones(2)}});
  EXPECT_THAT(open().names(), ElementsAre("plain"));
}

TEST_F(TensorSourceOfAPart, TakesShardsOfTheVariantUnderEitherName) {
  write("w.fp16-1.safetensors", {{"a", torch::ones(2)}});
  for (const char* name : {"w.safetensors.index.fp16.json", "w.fp16.safetensors.index.json"}) {
    const fs::path index =
        scratch_.write(std::string("model/unet/") + name, R"({"weight_map":{"a":"w.fp16-1.safetensors"}})");
    EXPECT_THAT(open().names(), ElementsAre("a"));
    fs::remove(index);
  }
}

TEST_F(TensorSourceOfAPart, NamesWhatIsMissing) {
  EXPECT_THAT(refusal(), AllOf(HasSubstr("w.safetensors"), HasSubstr("is missing")));
}

TEST_F(TensorSourceOfAPart, SaysHowToConvertAPickle) {
  std::string archive = "PK\x03\x04";
  archive.append(100, 'x');
  scratch_.write("model/unet/w.bin", archive);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("w.bin"), HasSubstr("can run code"), HasSubstr("safetensors")));
}

// What a hostile index may name instead of a shard. /etc/hostname must not even be opened.
TEST_F(TensorSourceOfAPart, RefusesIndexPathsThatLeaveTheFolder) {
  write("w-1.safetensors", {{"a", torch::ones(2)}});
  for (const char* name : {R"("../w-1.safetensors")", R"("/etc/hostname")", R"("sub/w.safetensors")", R"("..")",
                           R"(".")", R"("")", R"("w-1.safetensors\u0000")", R"("a\\b")", "1", "null", "[]"}) {
    write_index(std::string(R"({"a":)") + name + "}");
    EXPECT_THAT(refusal(), HasSubstr("must name a file beside the index")) << name;
  }
}

TEST_F(TensorSourceOfAPart, RefusesShardsThatAreNotPlainFilesOfTheModel) {
  write_index(R"({"a":"shard"})");
  EXPECT_THAT(refusal(), HasSubstr("cannot read"));
  fs::create_symlink("/etc/hostname", part() / "shard");
  EXPECT_THAT(refusal(), HasSubstr("leaves the model's folder"));
  fs::remove(part() / "shard");
  fs::create_symlink("shard", part() / "shard");
  EXPECT_THAT(refusal(), HasSubstr("cannot read"));
  fs::remove(part() / "shard");
  ASSERT_EQ(::mkfifo((part() / "shard").c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("is not a file"));
  fs::remove(part() / "shard");
  fs::create_symlink("/dev/zero", part() / "shard");
  EXPECT_THAT(refusal(), HasSubstr("leaves the model's folder"));
  fs::remove(part() / "shard");
  fs::create_directory(part() / "shard");
  EXPECT_THAT(refusal(), HasSubstr("is not a file"));
}

TEST_F(TensorSourceOfAPart, FollowsLinksInsideAModelOfTheHubCache) {
  const fs::path repository = scratch_.path() / "models--org--name";
  const fs::path unet = repository / "snapshots" / "abc" / "unet";
  fs::create_directories(unet);
  fs::create_directories(repository / "blobs");
  write_safetensors(real_file_system(), repository / "blobs" / "0123", {{"a", torch::ones(2)}});
  fs::create_symlink("../../../blobs/0123", unet / "w-1.safetensors");
  scratch_.write("models--org--name/snapshots/abc/unet/w.safetensors.index.json",
                 R"({"weight_map":{"a":"w-1.safetensors"}})");
  EXPECT_THAT(TensorSource::of_part(unet, "w").names(), ElementsAre("a"));
}

TEST_F(TensorSourceOfAPart, RefusesAnIndexThatDoesNotDescribeItsShards) {
  write("w-1.safetensors", {{"a", torch::ones(2)}});
  write("w-2.safetensors", {{"b", torch::ones(2)}});
  write_index(R"({"a":"w-2.safetensors","b":"w-2.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("is not in the shard that the index names"));
  write_index(R"({"a":"w-1.safetensors","a":"w-2.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("given twice"));
  write("w-2.safetensors", {{"a", torch::ones(2)}, {"b", torch::ones(2)}});
  write_index(R"({"a":"w-1.safetensors","b":"w-2.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("is also in"));
  write_index("[]");
  EXPECT_THAT(refusal(), HasSubstr("weight_map"));
}

}  // namespace
}  // namespace sdtune::model
