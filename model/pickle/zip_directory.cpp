#include "model/pickle/zip_directory.h"

#include <algorithm>
#include <optional>

#include "model/base/error.h"

namespace sdtune {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kDirectoryHeader = 0x02014b50, kDirectoryEnd = 0x06054b50,
                        kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr std::uint64_t kLocalHeaderBytes = 30, kDirectoryHeaderBytes = 46, kDirectoryEndBytes = 22, kEnd64Bytes = 56,
                        kEnd64LocatorBytes = 20;
constexpr std::uint64_t kLongestComment = 0xFFFF;
constexpr std::uint32_t kIn64 = 0xFFFFFFFF;  // the number stands in the zip64 field
constexpr std::uint16_t kZip64Field = 1;
constexpr std::uint16_t kEncrypted = 1;  // flag

class Directory {
 public:
  Directory(std::span<const std::byte> file, const std::string& where) : file_(file), where_(where) {}

  std::map<std::string, ZipEntry> read() {
    find_end();
    std::map<std::string, ZipEntry> entries;
    std::uint64_t at = start_;
    for (std::uint64_t i = 0; i < count_; ++i) at = read_entry(at, entries);
    if (at != end_) fail("has a directory of another size than it says");
    return entries;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw WeightError(where_, what, "copy or download it again");
  }
  [[noreturn]] void fail(const std::string& entry, const std::string& what) const {
    throw WeightError(where_ + ": " + entry, what, "write it again with torch.save");
  }

  // A little-endian number; the place must be inside the file.
  std::uint64_t number(std::uint64_t at, unsigned bytes) const {
    if (at > file_.size() || bytes > file_.size() - at) fail("is cut off");
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(file_[at + i]) << (8 * i);
    return value;
  }

  // The record at the end of the file, before a comment of any text; then the zip64 one if it is there.
  void find_end() {
    if (file_.size() < kDirectoryEndBytes) fail("is too short for a zip file");
    std::optional<std::uint64_t> found;
    const std::uint64_t last = file_.size() - kDirectoryEndBytes;
    for (std::uint64_t back = 0; back <= std::min(last, kLongestComment) && !found; ++back) {
      const std::uint64_t at = last - back;
      if (number(at, 4) == kDirectoryEnd && number(at + 20, 2) == back) found = at;
    }
    if (!found) fail("has no zip directory at its end: it is cut off");
    if (number(*found + 4, 2) != number(*found + 6, 2)) fail("is a part of a zip file on several disks");
    count_ = number(*found + 10, 2);
    std::uint64_t size = number(*found + 12, 4);
    start_ = number(*found + 16, 4);
    end_ = *found;
    if (*found >= kEnd64LocatorBytes && number(*found - kEnd64LocatorBytes, 4) == kEnd64Locator) {
      const std::uint64_t at = number(*found - kEnd64LocatorBytes + 8, 8);
      if (at > *found - kEnd64LocatorBytes || *found - kEnd64LocatorBytes - at < kEnd64Bytes ||
          number(at, 4) != kEnd64) {
        fail("has a zip64 record that is not where it says");
      }
      count_ = number(at + 32, 8);
      size = number(at + 40, 8);
      start_ = number(at + 48, 8);
      end_ = at;
    }
    if (start_ > end_ || end_ - start_ < size) fail("has a zip directory that is not where it says");
    end_ = start_ + size;
    if (count_ > size / kDirectoryHeaderBytes) fail("counts more entries than its directory has room for");
  }

  // Reads the entry at `at` of the directory; returns where the next one begins.
  std::uint64_t read_entry(std::uint64_t at, std::map<std::string, ZipEntry>& entries) const {
    if (end_ - at < kDirectoryHeaderBytes || number(at, 4) != kDirectoryHeader) fail("has a broken zip directory");
    const std::uint64_t flags = number(at + 8, 2), method = number(at + 10, 2);
    const std::uint64_t name_bytes = number(at + 28, 2), extra_bytes = number(at + 30, 2);
    const std::uint64_t next = at + kDirectoryHeaderBytes + name_bytes + extra_bytes + number(at + 32, 2);
    if (next > end_) fail("has a broken zip directory");
    const std::string name(reinterpret_cast<const char*>(file_.data()) + at + kDirectoryHeaderBytes, name_bytes);
    if (name.ends_with('/')) return next;
    std::uint64_t stored = number(at + 20, 4), size = number(at + 24, 4), header = number(at + 42, 4);
    read_zip64(at + kDirectoryHeaderBytes + name_bytes, extra_bytes, {&size, &stored, &header}, name);
    if ((flags & kEncrypted) != 0) fail(name, "is encrypted");
    if (method == 0 && stored != size) fail(name, "has two sizes in the zip directory");
    const ZipEntry entry{data_of(header, name), stored, method != 0};
    if (entry.size > start_ - entry.begin) fail(name, "lies beyond the file's data");
    if (!entries.emplace(name, entry).second) fail(name, "is there twice");
    return next;
  }

  // The numbers that are too large for 32 bits, in this order.
  void read_zip64(std::uint64_t at, std::uint64_t bytes, std::initializer_list<std::uint64_t*> numbers,
                  const std::string& name) const {
    const std::uint64_t end = at + bytes;
    while (end - at >= 4) {
      const std::uint64_t field = number(at, 2), field_end = at + 4 + number(at + 2, 2);
      if (field_end > end) fail(name, "has a broken extra field");
      if (field == kZip64Field) {
        std::uint64_t value_at = at + 4;
        for (std::uint64_t* value : numbers) {
          if (*value != kIn64) continue;
          if (field_end - value_at < 8) fail(name, "lacks a size of zip64");
          *value = number(value_at, 8);
          value_at += 8;
        }
        return;
      }
      at = field_end;
    }
  }

  // Where the entry's bytes begin: behind its local header, whose name must be the same.
  std::uint64_t data_of(std::uint64_t header, const std::string& name) const {
    if (header > start_ || start_ - header < kLocalHeaderBytes || number(header, 4) != kLocalHeader) {
      fail(name, "is not where the zip directory says");
    }
    const std::uint64_t name_bytes = number(header + 26, 2), extra_bytes = number(header + 28, 2);
    const std::uint64_t begin = header + kLocalHeaderBytes + name_bytes + extra_bytes;
    if (begin > start_) fail(name, "lies beyond the file's data");
    const char* there = reinterpret_cast<const char*>(file_.data()) + header + kLocalHeaderBytes;
    if (name != std::string_view(there, name_bytes)) fail(name, "has another name where the zip directory says it is");
    return begin;
  }

  std::span<const std::byte> file_;
  const std::string& where_;
  std::uint64_t start_ = 0, end_ = 0, count_ = 0;  // of the directory
};

}  // namespace

std::map<std::string, ZipEntry> read_zip_directory(std::span<const std::byte> file, const std::string& where) {
  return Directory(file, where).read();
}

}  // namespace sdtune
