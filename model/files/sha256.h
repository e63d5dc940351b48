// SHA-256 (FIPS 180-4), by OpenSSL: what manifests and caches know a file's content by.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "model/files/read_pieces.h"

namespace sdtune {

// Hashes a stream of bytes, piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  // 64 lower-case hexadecimal digits; the object is spent.
  std::string hex_digest();

 private:
  void* context_;  // EVP_MD_CTX
};

std::string sha256_hex(std::string_view bytes);
// Of a file's content. Throws DataError naming the path when it cannot be read.
std::string sha256_of_file(const std::filesystem::path& path, PageCache cache = PageCache::kKeep);

}  // namespace sdtune
