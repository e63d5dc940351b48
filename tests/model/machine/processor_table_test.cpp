#include "model/machine/processor_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "model/base/error.h"
#include "model/files/install_paths.h"
#include "model/machine/compute_dtype.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::model {
namespace {

using testing::HasSubstr;

class ProcessorTable : public testing::Test {
 protected:
  ProcessorTable() { setenv("SDTUNE_PROCESSORS", table_.c_str(), 1); }
  ~ProcessorTable() override { unsetenv("SDTUNE_PROCESSORS"); }
  ProcessorTable(const ProcessorTable&) = delete;
  ProcessorTable& operator=(const ProcessorTable&) = delete;

  void write(const std::string& text) { std::ofstream(table_) << text; }
  std::string error() {
    try {
      read_processor_table(table_);
    } catch (const ConfigError& found) {
      return found.what();
    }
    return "";
  }

  test::ScratchFolder folder_;
  std::filesystem::path table_ = folder_.path() / "sdtune" / "processors.yaml";
};

TEST_F(ProcessorTable, AnEntryTakesThePlaceOfItsKindAlone) {
  const ProcessorKind one{"A\"B", "6", "1", "avx2"}, other{"A\"B", "6", "2", "avx2"};
  add_processor(real_file_system(), table_, {one, "float32", "float32", "first"});
  add_processor(real_file_system(), table_, {other, "bfloat16", "float32", "second"});
  add_processor(real_file_system(), table_, {one, "float32", "bfloat16", "third"});
  EXPECT_EQ(read_processor_table(table_).size(), 2U);
  EXPECT_EQ(find_processor(one)->measured, "third");
  EXPECT_EQ(find_processor(one)->train, "bfloat16");
  EXPECT_EQ(find_processor(other)->sample, "bfloat16");
  EXPECT_FALSE(find_processor({"A\"B", "6", "1", "avx512f"}));  // a virtual machine that hides what the other showed
}

TEST_F(ProcessorTable, KeepsImplementationsAndTakesTheDefaultForThoseThatAreNotNamed) {
  const ProcessorKind kind{"A", "1", "2", "avx2"};
  const CpuImplementation libraries{false, false, false, false, false, false, false,
                                    false, false, false, false, false, false};
  add_processor(real_file_system(), table_, {kind, "float32", "float32", "here", libraries});
  EXPECT_EQ(find_processor(kind)->implementation, libraries);
  const std::string entry =
      "processors:\n  - {vendor: A, family: 1, model: 2, isa: avx2, sample: float32, train: float32, measured: x";
  for (const CpuChoice& choice : kCpuChoices) {
    write(entry + ", " + choice.name + ": " + std::string(choice.values[1]) + "}\n");
    CpuImplementation one = default_cpu_implementation();
    one.*choice.is_first = false;
    EXPECT_EQ(find_processor(kind)->implementation, one) << choice.name;
  }
  write(entry + ", attention: fast}\n");
  EXPECT_THAT(error(), HasSubstr("processors.yaml:2: attention is not allowed (got fast) (allowed: tiled, library)"));
}

TEST_F(ProcessorTable, AProcessTakesTheImplementationsOfItsTable) {
  const CpuImplementation libraries{false, false, false, false, false, false, false,
                                    false, false, false, false, false, false};
  add_processor(real_file_system(), table_, {processor_kind(), "float32", "float32", "here", libraries});
  take_implementation_from_table();
  EXPECT_EQ(cpu_implementation(), libraries);
  write("processors: 3\n");
  take_implementation_from_table();
  EXPECT_THROW(choose_dtype("float32", torch::kCPU, ComputeUse::kTrain, "--dtype"), ConfigError);  // said early
  set_cpu_implementation_source(nullptr);
}

TEST_F(ProcessorTable, TheUsersTableComesBeforeTheInstalledOne) {
  const auto installed = read_processor_table(find_shared_file("configs/processors.yaml"));
  ASSERT_FALSE(installed.empty());
  for (const ProcessorEntry& formats : installed) EXPECT_EQ(find_processor(formats.kind)->measured, formats.measured);
  ProcessorEntry mine = installed.front();
  mine.measured = "here";
  add_processor(real_file_system(), table_, mine);
  EXPECT_EQ(find_processor(mine.kind)->measured, "here");
}

TEST_F(ProcessorTable, ErrorsNameTheLine) {
  std::filesystem::create_directories(table_.parent_path());
  const std::string start = "processors:\n  - {vendor: A, family: 1, model: 2, isa: avx2, sample: ";
  write(start + "float32, train: float64, measured: x}\n");
  EXPECT_THAT(error(), HasSubstr("processors.yaml:2: train is not allowed (got float64) (allowed: float32, bfloat16)"));
  write(start + "float32, measured: x}\n");
  EXPECT_THAT(error(), HasSubstr("lacks train"));
  write(start + "float32, train: float32, measured: x, speed: 3}\n");
  EXPECT_THAT(error(), HasSubstr("has an unknown key speed"));
  write("");
  EXPECT_TRUE(read_processor_table(table_).empty());
}

TEST_F(ProcessorTable, AutoTakesWhatTheTableSaysForEachUseAndDefaultDoesNot) {
  add_processor(real_file_system(), table_, {processor_kind(), "bfloat16", "float32", "here"});
  EXPECT_EQ(choose_dtype("auto", torch::kCPU, ComputeUse::kSample, "--dtype"), torch::kBFloat16);
  EXPECT_EQ(choose_dtype("auto", torch::kCPU, ComputeUse::kTrain, "--dtype"), torch::kFloat32);
  EXPECT_EQ(choose_dtype("default", torch::kCPU, ComputeUse::kSample, "--dtype"), torch::kFloat32);
  EXPECT_EQ(choose_dtype("bfloat16", torch::kCPU, ComputeUse::kTrain, "--dtype"), torch::kBFloat16);
  EXPECT_THROW(choose_dtype("float64", torch::kCPU, ComputeUse::kTrain, "--dtype"), ConfigError);
  EXPECT_EQ(unknown_processor_note("auto", torch::kCPU), "");
  test::ScratchFolder root;  // a machine without /proc/cpuinfo
  setenv("SDTUNE_SYSTEM_ROOT", root.path().c_str(), 1);
  EXPECT_THAT(unknown_processor_note("auto", torch::kCPU), HasSubstr("unknown family unknown model unknown, none"));
  EXPECT_EQ(unknown_processor_note("default", torch::kCPU), "");
  EXPECT_EQ(choose_dtype("auto", torch::kCPU, ComputeUse::kSample, "--dtype"), torch::kFloat32);
  unsetenv("SDTUNE_SYSTEM_ROOT");
}

}  // namespace
}  // namespace sdtune::model
