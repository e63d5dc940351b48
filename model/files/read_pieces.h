// A file's content from front to back, without all of it in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

namespace sdtune {

// What reading leaves of a large file (kLargeFile) in the system's page cache: all of it, for those who read it next,
// or nothing.
enum class PageCache : std::int8_t { kKeep, kDrop };

// Calls `use` with one piece after the other, of at most a mebibyte; a piece is gone when `use` returns. Throws
// DataError naming the path when it cannot be read.
void read_pieces(const std::filesystem::path& path, PageCache cache,
                 const std::function<void(std::span<const std::byte>)>& use);

}  // namespace sdtune
