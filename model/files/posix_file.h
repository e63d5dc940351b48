// A file of the operating system, written in order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "model/files/file_system.h"

namespace sdtune {

// Throws StorageError: "cannot DOING: the system's reason", with what to do about a full disk.
[[noreturn]] void throw_storage_error(const std::filesystem::path& path, const std::string& doing, int reason);

class PosixOutputFile : public OutputFile {
 public:
  // `mode`: O_TRUNC or O_APPEND.
  PosixOutputFile(std::filesystem::path path, int mode);
  ~PosixOutputFile() override;
  PosixOutputFile(const PosixOutputFile&) = delete;
  PosixOutputFile& operator=(const PosixOutputFile&) = delete;

  void write(std::span<const std::byte> bytes) override;
  void sync() override;
  void close() override;

 private:
  void start_writeback();
  void leave_page_cache(std::int64_t end);

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t written_ = 0;      // bytes of the file
  std::int64_t handed_over_ = 0;  // of them, to the disk
  std::int64_t left_ = 0;         // of them, the page cache
};

}  // namespace sdtune
