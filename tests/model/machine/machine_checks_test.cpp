#include <gtest/gtest.h>
#include <sys/timex.h>

#include <fstream>
#include <optional>

#include "model/machine/folder_check.h"
#include "model/machine/hardware_checks.h"
#include "model/machine/system_checks.h"
#include "model/machine/verbs_check.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::model {
namespace {

ProcessFacts eight_cores() {
  ProcessFacts facts;
  facts.cores = 8;
  facts.now = std::chrono::sys_days(std::chrono::year(2026) / 11 / 23);
  return facts;
}

class MachineChecks : public testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_.path() / file).parent_path());
    std::ofstream(root_.path() / file) << text << "\n";
  }
  void put_cpu(const std::string& flags) {
    put("proc/cpuinfo", "processor\t: 0\nmodel name\t: A B\nflags\t\t: " + flags);
  }
  void put_memory(std::int64_t free_mib) {
    put("proc/meminfo",
        "MemTotal:       33554432 kB\nMemFree:  1 kB\nMemAvailable:   " + std::to_string(free_mib * 1024) + " kB");
  }
  void put_port(const std::string& state) {
    const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
    put(port + "state", state);
    put(port + "rate", "400 Gb/sec (4X NDR)");
    put(port + "link_layer", "InfiniBand");
  }

  test::ScratchFolder root_;
  SystemFiles files_{root_.path()};
  ProcessFacts facts_ = eight_cores();
};

TEST_F(MachineChecks, CpuNamesProcessorAndInstructionSets) {
  put_cpu("fpu sse2 avx2 avx512f avx512_bf16 hypervisor");
  const MachineCheck check = check_cpu(files_, facts_);
  EXPECT_EQ(check.status, CheckStatus::kOk) << check.advice;
  EXPECT_EQ(check.found, "A B, 8 cores, avx2 avx512f avx512_bf16");
}

TEST_F(MachineChecks, CpuWithoutAvx2Warns) {
  put_cpu("fpu sse2 avx");
  EXPECT_EQ(check_cpu(files_, facts_).status, CheckStatus::kWarn);
  put("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd bf16");  // aarch64 has no AVX2 to miss
  EXPECT_EQ(check_cpu(files_, facts_).status, CheckStatus::kOk);
}

TEST_F(MachineChecks, ProcessorKindIsFoundAmongLikeNames) {
  put("proc/cpuinfo",
      "vendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\nflags\t\t: sse2 avx2 avx512f "
      "avx512_bf16");
  EXPECT_EQ(kind_text(processor_kind(files_)), "AuthenticAMD family 26 model 2, avx512_bf16");
  put("proc/cpuinfo", "Features\t: fp asimd bf16\nCPU implementer\t: 0x41\nCPU variant\t: 0x1\nCPU part\t: 0xd40");
  EXPECT_EQ(kind_text(processor_kind(files_)), "0x41 family 0xd40 model 0x1, bf16");
  put("proc/cpuinfo", "");
  EXPECT_EQ(kind_text(processor_kind(files_)), "unknown family unknown model unknown, none");
}

TEST_F(MachineChecks, AnUnknownProcessorWithBfloat16Warns) {
  const ProcessorKind kind{"A", "1", "2", "avx512_bf16"}, plain{"A", "1", "2", "avx2"};
  EXPECT_EQ(check_formats(kind, {}).status, CheckStatus::kWarn);
  EXPECT_EQ(check_formats(plain, {}).status, CheckStatus::kOk);
  const CpuImplementation library{false, false, false, false, false, false, false,
                                  false, false, false, false, false, false, false};
  const MachineCheck known = check_formats(kind, ProcessorEntry{kind, "bfloat16", "float32", "here", library});
  EXPECT_EQ(known.status, CheckStatus::kOk);
  EXPECT_EQ(known.found,
            "auto on the CPU: bfloat16 for images, float32 for training; attention library, products mkl, convolutions "
            "library, layout contiguous, convolutions_3x3 direct, "
            "attention_bfloat16 float32, attention_backward_bfloat16 float32, convolutions_bfloat16 library, "
            "attention_heads multiples_of_8, attention_causal library, small_products library, "
            "convolutions_3x3_bfloat16 direct, attention_exponential_bfloat16 long, convolutions_3x3_kernels whole");
}

TEST_F(MachineChecks, MoreThreadsThanTheContainerAllowsWarn) {
  put_cpu("sse2 avx2");
  put("sys/fs/cgroup/cpu.max", "200000 100000");
  const MachineCheck check = check_cpu(files_, facts_);
  EXPECT_EQ(check.status, CheckStatus::kWarn);
  EXPECT_NE(check.found.find("the container may use 2)"), std::string::npos) << check.found;
  EXPECT_EQ(check.advice, "8 threads would share 2 cores and wait for each other: set OMP_NUM_THREADS=2");
  facts_.openmp_threads = "2";
  EXPECT_EQ(check_cpu(files_, facts_).status, CheckStatus::kOk);
  put("sys/fs/cgroup/cpu.max", "max 100000");
  facts_.openmp_threads = "";
  EXPECT_EQ(check_cpu(files_, facts_).status, CheckStatus::kOk);
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000");  // control groups of version 1
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(check_cpu(files_, facts_).status, CheckStatus::kWarn);
}

TEST_F(MachineChecks, MemoryFailsBelowWhatTheBundledBaseNeeds) {
  EXPECT_EQ(check_memory(files_).found, "not known");
  const std::vector<std::pair<std::int64_t, CheckStatus>> cases = {
      {1023, CheckStatus::kFail}, {1025, CheckStatus::kWarn}, {4095, CheckStatus::kWarn}, {4097, CheckStatus::kOk}};
  for (const auto& [mebibytes, status] : cases) {
    put_memory(mebibytes);
    EXPECT_EQ(check_memory(files_).status, status) << mebibytes;
  }
  EXPECT_EQ(check_memory(files_).found, "4.0 GiB free of 32.0 GiB");
}

TEST_F(MachineChecks, MemoryIsTheContainersWhereThatIsLess) {
  put_memory(20 * 1024);
  put("sys/fs/cgroup/memory.max", std::to_string(3 * kGiB));
  put("sys/fs/cgroup/memory.stat", "file 99999999999\nanon " + std::to_string(kGiB));
  const MachineCheck check = check_memory(files_);
  EXPECT_EQ(check.found, "2.0 GiB free of 32.0 GiB, as the container's limit leaves");
  EXPECT_EQ(check.status, CheckStatus::kWarn);
  put("sys/fs/cgroup/memory.max", "max");
  EXPECT_EQ(check_memory(files_).status, CheckStatus::kOk);
}

TEST_F(MachineChecks, SharedMemoryMattersWithSeveralGpus) {
  facts_.shared_memory_bytes = 64 << 20;  // docker's default
  EXPECT_EQ(check_shared_memory(facts_, 1).status, CheckStatus::kOk);
  EXPECT_EQ(check_shared_memory(facts_, 2).status, CheckStatus::kWarn);
  facts_.shared_memory_bytes = 8 * kGiB;
  EXPECT_EQ(check_shared_memory(facts_, 2).status, CheckStatus::kOk);
}

TEST_F(MachineChecks, FewOpenFilesWarn) {
  EXPECT_EQ(check_open_files(facts_).status, CheckStatus::kOk);
  facts_.open_files = 1023;
  EXPECT_EQ(check_open_files(facts_).status, CheckStatus::kWarn);
}

TEST_F(MachineChecks, VerbsNeedDeviceFileActivePortAndLockedMemory) {
  EXPECT_EQ(check_verbs(files_, facts_).status, CheckStatus::kOk);  // none is no fault
  put_port("1: DOWN");
  EXPECT_NE(check_verbs(files_, facts_).advice.find("--device=/dev/infiniband"), std::string::npos);
  put("dev/infiniband/uverbs0", "");
  EXPECT_NE(check_verbs(files_, facts_).advice.find("no port is active"), std::string::npos);
  put_port("4: ACTIVE");
  facts_.locked_memory = 8 << 20;
  EXPECT_NE(check_verbs(files_, facts_).advice.find("memlock"), std::string::npos);
  facts_.locked_memory = kUnlimited;
  const MachineCheck check = check_verbs(files_, facts_);
  EXPECT_EQ(check.status, CheckStatus::kOk) << check.advice;
  EXPECT_EQ(check.found, "mlx5_0:1 InfiniBand 400 Gb/sec (4X NDR), ACTIVE");
}

TEST_F(MachineChecks, ClockIsComparedWithTheCalendar) {
  EXPECT_EQ(check_clock(facts_).found, "2026-11-23 00:00 UTC, synchronized");
  EXPECT_EQ(check_clock(facts_).status, CheckStatus::kOk);
  facts_.clock_is_synchronized = false;
  EXPECT_EQ(check_clock(facts_).status, CheckStatus::kWarn);
  EXPECT_EQ(check_clock(facts_).found, "2026-11-23 00:00 UTC, not synchronized");
  facts_.clock_is_synchronized = std::nullopt;
  EXPECT_EQ(check_clock(facts_).status, CheckStatus::kOk) << "what is not known is no fault";
  EXPECT_EQ(check_clock(facts_).found, "2026-11-23 00:00 UTC, not known whether synchronized");
  facts_.now = std::chrono::sys_days(std::chrono::year(1970) / 1 / 1);
  EXPECT_EQ(check_clock(facts_).status, CheckStatus::kFail);
}

TEST_F(MachineChecks, FolderIsJudgedByItsFileSystem) {
  const auto status = [](std::uint64_t type, std::int64_t free_gib, bool is_writable = true) {
    return check_run_folder({"/runs", type, free_gib * kGiB, is_writable}).status;
  };
  EXPECT_EQ(status(0xef53, 100), CheckStatus::kOk);
  EXPECT_EQ(status(0x12345, 100), CheckStatus::kOk) << "a file system that is not known is no fault";
  for (const std::uint64_t type : {0x01021994UL, 0x794c7630UL, 0x6969UL, 0xfe534d42UL, 0x65735546UL}) {
    EXPECT_EQ(status(type, 100), CheckStatus::kWarn) << std::hex << type;
  }
  EXPECT_EQ(status(0xef53, 19), CheckStatus::kWarn);
  EXPECT_EQ(status(0xef53, 0), CheckStatus::kFail);
  EXPECT_EQ(status(0xef53, 100, false), CheckStatus::kFail);
}

TEST_F(MachineChecks, FolderFactsAreOfTheNearestThatIsThere) {
  const FolderFacts facts = folder_facts(root_.path() / "runs" / "me");
  EXPECT_EQ(facts.folder, root_.path());
  EXPECT_TRUE(facts.is_writable);
  EXPECT_GT(facts.free_bytes, 0);
  EXPECT_NE(facts.type, 0U);
}

TEST_F(MachineChecks, VersionsNameSystemAndContainer) {
  facts_.kernel = "Linux 6.1 x86_64";
  facts_.c_library = "glibc 2.36";
  put("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"");
  const std::string plain = "sdtune 0.1, LibTorch 2.11.0, glibc 2.36, Linux 6.1 x86_64, Debian GNU/Linux 12 (bookworm)";
  EXPECT_EQ(check_versions(files_, facts_, "0.1", "2.11.0").found, plain);
  put(".dockerenv", "");
  EXPECT_EQ(check_versions(files_, facts_, "0.1", "2.11.0").found, plain + ", in a container");
}

TEST(ProcessFacts, OfAClockThatCannotBeAskedNothingIsKnown) {
  EXPECT_EQ(synchronized_by_answer(TIME_OK), std::optional<bool>(true));
  EXPECT_EQ(synchronized_by_answer(TIME_INS), std::optional<bool>(true)) << "a leap second is ahead";
  EXPECT_EQ(synchronized_by_answer(TIME_ERROR), std::optional<bool>(false));
  EXPECT_EQ(synchronized_by_answer(-1), std::nullopt) << "as seccomp refuses it";
}

TEST(ProcessFacts, AreThoseOfThisProcess) {
  const ProcessFacts facts = process_facts();
  EXPECT_GE(facts.cores, 1);
  EXPECT_GT(facts.open_files, 3);
  EXPECT_TRUE(facts.kernel.starts_with("Linux ")) << facts.kernel;
  EXPECT_TRUE(facts.c_library.starts_with("glibc 2.")) << facts.c_library;
}

}  // namespace
}  // namespace sdtune::model
