#include "model/files/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>

#include "model/base/error.h"
#include "model/files/mapped_file.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/scratch_folder.h"

namespace sdtune {
namespace {

using test::Fault;
using test::FaultyFileSystem;
using test::ScratchFolder;
using test::SimulatedKill;
using ::testing::HasSubstr;

TEST(FileSystem, WritesReplacesAndRemoves) {
  const ScratchFolder scratch;
  FileSystem& files = real_file_system();
  const auto path = scratch.path() / "a" / "b.txt";
  files.create_directories(path.parent_path());
  write_file_atomically(files, path, "one");
  write_file_atomically(files, path, std::string("t\0o", 3));
  EXPECT_EQ(read_file(path), std::string("t\0o", 3));
  files.rename(path, scratch.path() / "c");
  files.unlink(scratch.path() / "c");
  files.remove_tree(scratch.path() / "a");
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

// Pieces of 32 MiB go to the disk while the file is still written.
TEST(FileSystem, WritesLargeFilesInPieces) {
  const ScratchFolder scratch;
  const auto path = scratch.path() / "large";
  std::vector<std::uint32_t> numbers(std::size_t{5} << 20);  // 20 MiB
  const std::unique_ptr<OutputFile> file = real_file_system().create(path);
  for (std::uint32_t part = 0; part < 4; ++part) {
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(i) * 4 + part;
    file->write(std::as_bytes(std::span(numbers)));
  }
  file->sync();
  file->close();
  const MappedFile written(path);
  ASSERT_EQ(written.bytes().size(), 4 * numbers.size() * sizeof(std::uint32_t));
  for (std::uint32_t part = 0; part < 4; ++part) {
    std::memcpy(numbers.data(), written.bytes().data() + part * numbers.size() * sizeof(std::uint32_t),
                numbers.size() * sizeof(std::uint32_t));
    const bool is_same = std::all_of(numbers.begin(), numbers.end(), [&, i = std::uint32_t{0}](auto number) mutable {
      return number == 4 * i++ + part;
    });
    EXPECT_TRUE(is_same) << part;
  }
}

TEST(FileSystem, MakesTheFolderOfAFile) {
  const ScratchFolder scratch;
  create_parent_folder(real_file_system(), scratch.path() / "a/b/file");
  create_parent_folder(real_file_system(), scratch.path() / "a/b/file");
  EXPECT_TRUE(std::filesystem::is_directory(scratch.path() / "a/b"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "a/b/file"));
  EXPECT_NO_THROW(create_parent_folder(real_file_system(), "file"));
  scratch.write("is_a_file", "");
  EXPECT_THROW(create_parent_folder(real_file_system(), scratch.path() / "is_a_file/file"), StorageError);
}

TEST(FileSystem, ReportsThePathAndTheReason) {
  const ScratchFolder scratch;
  const auto absent = scratch.path() / "absent" / "x";
  try {
    real_file_system().create(absent);
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_EQ(error.code(), ExitCode::kStorage);
    EXPECT_THAT(error.what(), HasSubstr(absent.string()));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
  EXPECT_THROW(real_file_system().rename(absent, scratch.path() / "y"), StorageError);
  EXPECT_THROW(real_file_system().unlink(absent), StorageError);
  EXPECT_THROW(real_file_system().sync_directory(absent), StorageError);
  EXPECT_THROW(real_file_system().create_directories(scratch.write("file", "") / "below"), StorageError);
}

TEST(FileSystem, SaysWhatToDoWhenTheDiskIsFull) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this machine has no /dev/full";
  const auto file = real_file_system().create("/dev/full");
  const std::string bytes(10, 'x');
  try {
    file->write(std::as_bytes(std::span(bytes)));
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_THAT(error.problems().front().hint, HasSubstr("space"));
  }
}

// At every operation, whatever goes wrong there: afterwards the file is whole, the old one or the new one.
TEST(FileSystem, AtomicWriteIsOldOrNewAtEveryFault) {
  FaultyFileSystem counter;
  const ScratchFolder first;
  write_file_atomically(counter, first.path() / "f", "new");
  ASSERT_GE(counter.operations(), 6u);
  for (const Fault fault :
       {Fault::kFailOnce, Fault::kFailOnward, Fault::kKillBefore, Fault::kKillInside, Fault::kKillAfter}) {
    for (std::size_t at = 0; at < counter.operations(); ++at) {
      const ScratchFolder scratch;
      const auto path = scratch.write("f", "old");
      FaultyFileSystem files(fault, at);
      bool killed = false;
      try {
        write_file_atomically(files, path, "new");
      } catch (const StorageError&) {
      } catch (const SimulatedKill&) {
        killed = true;
      }
      EXPECT_EQ(killed, fault != Fault::kFailOnce && fault != Fault::kFailOnward);
      EXPECT_THAT(read_file(path), ::testing::AnyOf("old", "new")) << at;
    }
  }
}

// The mutant that the test above must see: written in place.
TEST(FileSystem, AWriteInPlaceWouldBeSeenToTear) {
  const ScratchFolder scratch;
  const auto path = scratch.write("f", "old");
  FaultyFileSystem files(Fault::kKillInside, 1);
  const std::string content = "new";
  EXPECT_THROW(
      {
        const auto file = files.create(path);
        file->write(std::as_bytes(std::span(content)));
      },
      SimulatedKill);
  EXPECT_EQ(read_file(path), "n");
}

// What there is at one moment: of a file that is replaced meanwhile the old content.
std::string content_at_once(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::vector<std::string> names_beside(const std::filesystem::path& path) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path())) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

// As two runs do that share a folder of class images. Under one temporary name the second rename would find nothing.
TEST(FileSystem, WritersOfOneFileAtOnceLeaveItWhole) {
  const ScratchFolder scratch;
  const std::string long_one(300'000, 'l'), short_one(100'000, 's');
  const auto path = scratch.write("image.png", short_one);
  const auto write_often = [&path](const std::string& content) {
    FaultyFileSystem files;  // the real one, without waiting for the disk
    for (int time = 0; time < 300; ++time) write_file_atomically(files, path, content);
  };
  std::future<void> one = std::async(std::launch::async, [&] { write_often(long_one); });
  std::future<void> other = std::async(std::launch::async, [&] { write_often(short_one); });
  const auto is_busy = [](const std::future<void>& writer) {
    return writer.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  };
  bool is_whole = true;
  while (is_busy(one) || is_busy(other)) {
    const std::string content = content_at_once(path);
    is_whole = is_whole && (content == long_one || content == short_one);
  }
  EXPECT_TRUE(is_whole);
  EXPECT_NO_THROW(one.get());
  EXPECT_NO_THROW(other.get());
  EXPECT_THAT(content_at_once(path), ::testing::AnyOf(long_one, short_one));
  EXPECT_EQ(names_beside(path), std::vector<std::string>{"image.png"});
}

TEST(FileSystem, AWriteThatFailsLeavesNothingBesideTheFile) {
  const ScratchFolder scratch;
  const auto path = scratch.write("f", "old");
  FaultyFileSystem counter;
  write_file_atomically(counter, scratch.path() / "f", "old");
  for (std::size_t at = 0; at < counter.operations(); ++at) {
    FaultyFileSystem files(Fault::kFailOnce, at);
    EXPECT_THROW(write_file_atomically(files, path, "new"), StorageError);
    EXPECT_EQ(names_beside(path), std::vector<std::string>{"f"}) << at;
  }
}

TEST(FileSystem, AFileIsReplacedOnceItIsProven) {
  const ScratchFolder scratch;
  const auto path = scratch.write("f", "old");
  FaultyFileSystem counter;
  const auto write_into = [&path](FaultyFileSystem& files) {
    write_verified_file(files, path, [&](const std::filesystem::path& partial) {
      EXPECT_EQ(read_file(path), "old");
      write_file_atomically(files, partial, "new");
    });
  };
  write_into(counter);
  EXPECT_EQ(read_file(path), "new");
  for (std::size_t at = 0; at < counter.operations(); ++at) {
    scratch.write("f", "old");
    FaultyFileSystem files(Fault::kFailOnce, at);
    EXPECT_THROW(write_into(files), StorageError);
    const bool is_renamed = at + 1 == counter.operations();  // the sync of the folder is the last
    EXPECT_EQ(read_file(path), is_renamed ? "new" : "old") << at;
    EXPECT_EQ(names_beside(path), std::vector<std::string>{"f"}) << at;
  }
}

TEST(FileSystem, AFileWhoseProofFailsIsNotReplaced) {
  const ScratchFolder scratch;
  const auto path = scratch.write("f", "old");
  const auto refuse_after = [](const std::filesystem::path& partial) {
    write_file_atomically(real_file_system(), partial, "new");
    throw WeightError("f", "is not what was written");
  };
  EXPECT_THROW(write_verified_file(real_file_system(), path, refuse_after), WeightError);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(names_beside(path), std::vector<std::string>{"f"});
}

// Names of one writing would pile up otherwise. What another process writes now, and what has a name of its own until
// it is whole, stays.
TEST(FileSystem, RemovesWhatKilledProcessesLeftBesideTheFile) {
  const ScratchFolder scratch;
  const auto left = scratch.write("left/.big.safetensors.partial-0123456789abcdef", "half a model");
  const auto under_way = scratch.write("left/.f.partial-fedcba9876543210", "half");
  const auto labels = scratch.write("left/.labels.jsonl.partial", "{}");
  const auto own = scratch.write("left/mine.partial-0123456789abcdef", "a name without a dot before it");
  const auto long_ago = std::filesystem::last_write_time(left) - std::chrono::hours(2);
  for (const auto& path : {left, labels, own}) std::filesystem::last_write_time(path, long_ago);
  write_file_atomically(real_file_system(), scratch.path() / "left" / "f", "whole");
  EXPECT_FALSE(std::filesystem::exists(left));
  for (const auto& path : {under_way, labels, own}) EXPECT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_EQ(read_file(scratch.path() / "left" / "f"), "whole");
}

TEST(FileSystem, KnowsATildeThatNoShellHasReplaced) {
  for (const char* path : {"~", "~/", "~/runs/me"}) EXPECT_TRUE(tilde_problem("output", path)) << path;
  for (const char* path : {"", "/home/me", "a/~", "./~", "~me", "a~"})
    EXPECT_FALSE(tilde_problem("output", path)) << path;
}

TEST(FileSystem, ReadsOnlyFilesAndNotTooMuch) {
  const ScratchFolder scratch;
  const auto file = scratch.write("f", "12345");
  EXPECT_EQ(read_file(file, 5), "12345");
  EXPECT_THROW(read_file(file, 4), DataError);
  EXPECT_THROW(read_file(scratch.path()), DataError);
  EXPECT_THROW(read_file(scratch.path() / "absent"), DataError);
  const auto fifo = scratch.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THROW(read_file(fifo), DataError);
}

TEST(MappedFile, MapsFilesAndNothingElse) {
  const ScratchFolder scratch;
  const MappedFile mapped(scratch.write("f", "bytes"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()), "bytes");
  EXPECT_TRUE(MappedFile(scratch.write("empty", "")).bytes().empty());
  const auto fifo = scratch.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THROW(MappedFile{fifo}, WeightError);
  EXPECT_THROW(MappedFile{scratch.path()}, WeightError);
  EXPECT_THROW(MappedFile{"/dev/zero"}, WeightError);
  EXPECT_THROW(MappedFile{scratch.path() / "absent"}, WeightError);
  std::filesystem::create_symlink("loop", scratch.path() / "loop");
  EXPECT_THROW(MappedFile{scratch.path() / "loop"}, WeightError);
}

}  // namespace
}  // namespace sdtune
