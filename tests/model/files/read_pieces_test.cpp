#include "model/files/read_pieces.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/files/mapped_file.h"
#include "tests/support/scratch_folder.h"

namespace sdtune {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMebi = std::int64_t{1} << 20;

// Bytes of a file that the system has in memory.
std::int64_t cached_bytes(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto size = static_cast<std::size_t>(fs::file_size(path)), page = static_cast<std::size_t>(::getpagesize());
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  std::vector<unsigned char> pages((size + page - 1) / page);
  EXPECT_EQ(::mincore(address, size, pages.data()), 0);
  ::munmap(address, size);
  const auto cached = std::count_if(pages.begin(), pages.end(), [](unsigned char flags) { return (flags & 1) != 0; });
  return static_cast<std::int64_t>(cached) * static_cast<std::int64_t>(page);
}

void write_whole(FileSystem& files, const fs::path& path, std::int64_t size) {
  const std::unique_ptr<OutputFile> file = files.create(path);
  const std::vector<std::byte> piece(static_cast<std::size_t>(std::min(size, 40 * kMebi)), std::byte{7});
  for (std::int64_t left = size; left > 0; left -= std::ssize(piece)) {
    file->write(std::span(piece).first(static_cast<std::size_t>(std::min<std::int64_t>(left, std::ssize(piece)))));
  }
  EXPECT_LE(cached_bytes(path), std::max(size / 4, kMebi));  // no more than pieces on their way
  file->sync();
  file->close();
}

class PageCacheOf : public ::testing::Test {
 protected:
  void SetUp() override {
#if !defined(__linux__)
    GTEST_SKIP() << "only Linux lets a program say what it keeps";
#endif
    scratch_.write("small", std::string(kMebi, 'x'));
    const int file = ::open(path("small").c_str(), O_RDONLY | O_CLOEXEC);
    ::fsync(file);
#if defined(__linux__)
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
#endif
    ::close(file);
    if (cached_bytes(path("small")) > 0) GTEST_SKIP() << "this file system is in memory";
    scratch_.write("large", "");
    fs::resize_file(path("large"), kLargeFile);  // a hole is read as other content is
  }
  fs::path path(const char* name) const {
    return scratch_.path() / name;
  }
  void read(const char* name, PageCache cache) const {
    read_pieces(path(name), cache, [](auto) {});
  }

  const test::ScratchFolder scratch_;
};

TEST_F(PageCacheOf, LargeFilesLeaveItWhileTheyAreWritten) {
  write_whole(real_file_system(), path("written"), kLargeFile + kMebi);
  EXPECT_LE(cached_bytes(path("written")), kMebi);
  const std::unique_ptr<OutputFile> smaller = real_file_system().create(path("smaller"));
  smaller->write(std::vector<std::byte>(static_cast<std::size_t>(kMebi)));
  smaller->sync();
  smaller->close();
  EXPECT_EQ(cached_bytes(path("smaller")), kMebi);
}

TEST_F(PageCacheOf, ReadersSayWhatStays) {
  read("large", PageCache::kKeep);
  EXPECT_EQ(cached_bytes(path("large")), kLargeFile);
  read("large", PageCache::kDrop);
  EXPECT_LE(cached_bytes(path("large")), kMebi);
  read("small", PageCache::kDrop);
  EXPECT_EQ(cached_bytes(path("small")), kMebi) << "not large";
}

TEST_F(PageCacheOf, WhatAMappedFileReleasesLeavesItToo) {
  for (const PageCache cache : {PageCache::kKeep, PageCache::kDrop}) {
    const MappedFile file(path("large"), cache);
    for (std::size_t i = 0; i < file.bytes().size(); i += 4096) ASSERT_EQ(file.bytes()[i], std::byte{});
    file.release(file.bytes());
    EXPECT_EQ(cached_bytes(path("large")), cache == PageCache::kKeep ? kLargeFile : 0);
  }
}

TEST(ReadPieces, GiveTheWholeContentInOrder) {
  const test::ScratchFolder scratch;
  std::string content(2'500'000, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i % 251);
  const fs::path path = scratch.write("a", content);
  std::string found;
  read_pieces(path, PageCache::kDrop, [&](std::span<const std::byte> piece) {
    EXPECT_LE(std::ssize(piece), kMebi);
    found.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  EXPECT_EQ(found, content);
  EXPECT_THROW(read_pieces(scratch.path(), PageCache::kKeep, [](auto) {}), DataError) << "a folder";
}

TEST(ReadPieces, AreOfFilesAlone) {
  const test::ScratchFolder scratch;
  const fs::path fifo = scratch.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const fs::path& path : {scratch.path(), fifo, fs::path("/dev/zero")}) {
    EXPECT_THROW(read_pieces(path, PageCache::kKeep, [](std::span<const std::byte>) {}), DataError) << path;
  }
}

}  // namespace
}  // namespace sdtune
