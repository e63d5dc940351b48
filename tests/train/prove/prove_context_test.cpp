#include "train/prove/prove_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

using testing::HasSubstr;

class EndedBadly : public testing::Test {
 protected:
  // Of a process with such an end and these last words.
  PartResult result_of(int code, bool may_skip) const {
    Child child;
    child.log = folder_.write("piece.log", "begins\nsdtune: error: a file: No space left on device\n");
    ChildrenEnd end;
    end.codes = {0, code};
    return ended_badly(context_, "parity_bf16", end, {child, child}, may_skip);
  }

  test::ScratchFolder folder_;
  StopFlag stop_;
  PartStore store_{real_file_system(), folder_.path() / "proof", Json{{"sdtune", "1"}, {"device", "cpu"}}};
  ProveContext context_{.program = "sdtune", .store = store_, .steps = 4, .stop = stop_};
};

TEST_F(EndedBadly, AFullDiskIsNoFaultOfTheDevice) {
  try {
    result_of(5, /*may_skip=*/true);
    ADD_FAILURE() << "it would be kept";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.problems().front().line(),
                HasSubstr("parity_bf16 ended with exit code 5: sdtune: error: a file"));
  }
}

TEST_F(EndedBadly, MemoryThatRanOutIsLeftOut) {
  for (const int code : {4, 137}) {  // sdtune's own code; the kernel's SIGKILL
    EXPECT_EQ(result_of(code, /*may_skip=*/true).status, PartStatus::kSkipped) << code;
    EXPECT_EQ(result_of(code, /*may_skip=*/false).status, PartStatus::kFailed) << code;
  }
  for (const int code : {1, 134, 139}) EXPECT_EQ(result_of(code, true).status, PartStatus::kFailed) << code;
}

}  // namespace
}  // namespace sdtune::train
