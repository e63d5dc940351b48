// Diffusers' side with shell scripts in the place of Python and of sdtune: what they are asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <filesystem>
#include <string>

#include "model/files/file_system.h"
#include "tests/support/environment.h"
#include "tests/support/scratch_folder.h"
#include "train/prove/parts.h"
#include "train/prove/step_record.h"

namespace sdtune::train {
namespace {

using testing::HasSubstr;

// A run that ends at once, and leaves what is read of it.
constexpr const char* kQuickTraining = R"(#!/bin/sh
folder="$(dirname "$0")/proof/work/timed-run"
mkdir -p "$folder"
echo '{"dtype": "bfloat16"}' > "$folder/run.json"
)";

// Has diffusers, and no memory for it.
constexpr const char* kSmallPython = R"(#!/bin/sh
echo "$@" >> "$(dirname "$0")/words"
[ "$2" = check ] || exit 4
)";

TEST(DiffusersPart, AsksForTheDeviceThatIsProved) {
  const test::ScratchFolder folder;
  const std::filesystem::path program = folder.write("sdtune", kQuickTraining);
  const std::filesystem::path python = folder.write("python3", kSmallPython);
  for (const auto& file : {program, python}) std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  const test::Environment environment("SDTUNE_PYTHON", python.string());
  const StopFlag stop;
  const PartStore store(real_file_system(), folder.path() / "proof", Json{{"sdtune", "1"}, {"device", "a GPU"}});
  std::filesystem::create_directories(store.work());
  StepRecord record;
  record.tensors.emplace_back("losses", torch::zeros({1}));
  record.facts["dtype"] = "float32";
  write_record(store.work() / "steps_no", record);
  const ProveContext context{.program = program,
                             .store = store,
                             .is_cuda = true,
                             .device = "cuda:1",
                             .gpus = 2,
                             .steps = 4,
                             .against = "diffusers",
                             .stop = stop};
  const PartResult result = diffusers_part(context);
  EXPECT_EQ(result.status, PartStatus::kSkipped) << result.reason;
  const std::string words = read_file(folder.path() / "words");
  for (const char* what : {" steps --record ", " time --output "}) {
    const std::size_t line = words.find(what);
    ASSERT_NE(line, std::string::npos) << what << result.reason;
    EXPECT_THAT(words.substr(line, words.find('\n', line) - line), HasSubstr("--device cuda:1 "));
  }
}

}  // namespace
}  // namespace sdtune::train
