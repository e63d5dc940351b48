#include "app/cli/given_options.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/scratch_folder.h"

namespace sdtune::app {
namespace {

struct ConfiguredOptions {
  std::int64_t seed = 0;
  std::string config;

  FieldList fields() { return {{{.name = "seed", .help = "h"}, &seed}, {{.name = "config", .help = "h"}, &config}}; }
};

GivenOptions apply_file(ConfiguredOptions& options, const std::filesystem::path& file, const std::string& yaml) {
  std::ofstream(file) << yaml;
  const Arguments arguments = parse_arguments({"--config", file.string()}, options.fields());
  return apply_options(options.fields(), arguments, options.config, "");
}

TEST(GivenOptions, AFileThatNamesAnotherOneIsRefused) {
  const test::ScratchFolder folder;
  const std::filesystem::path file = folder.path() / "one.yaml";
  ConfiguredOptions options;
  EXPECT_TRUE(apply_file(options, file, "seed: 3\n").problems.empty());
  EXPECT_EQ(options.seed, 3);
  const GivenOptions given = apply_file(options, file, "seed: 4\nconfig: other.yaml\n");
  ASSERT_EQ(given.problems.size(), 1u);
  EXPECT_EQ(given.problems.front().where, file.string() + ":2");
  EXPECT_NE(given.problems.front().what.find("only --config names one"), std::string::npos);
}

}  // namespace
}  // namespace sdtune::app
