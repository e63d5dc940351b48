#include "model/machine/control_groups.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace sdtune::model {
namespace {

class ControlGroups : public testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((scratch_.path() / file).parent_path());
    scratch_.write(file, text);
  }
  std::optional<std::int64_t> memory() const { return memory_left(SystemFiles(scratch_.path())); }
  std::optional<double> cores() const { return quota_of_cores(SystemFiles(scratch_.path())); }
  test::ScratchFolder scratch_;
};

TEST_F(ControlGroups, OfASlurmJobTheLimitIsInAGroupAbove) {
  EXPECT_EQ(memory(), std::nullopt);
  EXPECT_EQ(cores(), std::nullopt);
  put("proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0");
  put("sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/user/task_0/memory.max", "max");
  put("sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/memory.max", "16000");
  put("sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/memory.stat", "file 9000\nanon 4000");
  put("sys/fs/cgroup/system.slice/memory.max", "900000");
  put("sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/cpu.max", "400000 100000");
  put("sys/fs/cgroup/system.slice/cpu.max", "800000 100000");
  EXPECT_EQ(memory(), 12000);
  EXPECT_EQ(cores(), 4.0);
}

TEST_F(ControlGroups, OfVersionOneEachControllerHasItsOwn) {
  put("proc/self/cgroup", "5:cpu,cpuacct:/docker/a1\n4:memory:/docker/a1\n1:name=systemd:/docker/a1");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(memory(), std::nullopt);
  put("sys/fs/cgroup/memory/docker/a1/memory.limit_in_bytes", "5000");
  put("sys/fs/cgroup/memory/docker/a1/memory.stat", "cache 4000\ntotal_rss 1000");
  put("sys/fs/cgroup/cpu/docker/a1/cpu.cfs_quota_us", "150000");
  put("sys/fs/cgroup/cpu/docker/a1/cpu.cfs_period_us", "100000");
  EXPECT_EQ(memory(), 4000);
  EXPECT_EQ(cores(), 1.5);
}

TEST_F(ControlGroups, AContainerMaySeeItsOwnRootUnderTheHostsPath) {
  put("proc/self/cgroup", "0::/kubepods/pod1/c1");
  put("sys/fs/cgroup/memory.max", "7000");
  EXPECT_EQ(memory(), 7000);
}

}  // namespace
}  // namespace sdtune::model
