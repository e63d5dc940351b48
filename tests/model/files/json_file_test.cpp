#include "model/files/json_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"
#include "tests/support/scratch_folder.h"

namespace sdtune {
namespace {

std::string refusal(const std::filesystem::path& file) {
  try {
    read_json(file);
  } catch (const WeightError& error) {
    return error.what();
  }
  return "";
}

TEST(JsonFile, NamesTheFileThatCannotBeRead) {
  const test::ScratchFolder scratch;
  EXPECT_THAT(refusal(scratch.path() / "absent.json"), testing::HasSubstr("absent.json"));
  EXPECT_THAT(refusal(scratch.path()), testing::HasSubstr("is not a file"));
  EXPECT_THAT(refusal(scratch.write("x.json", "{")), testing::HasSubstr("x.json"));
}

}  // namespace
}  // namespace sdtune
