// The hash by which a hub knows a file's content: SHA-256 of large files, git's SHA-1 of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sdtune::app {

// Whether the text is such a hash: 64 or 40 lower-case hexadecimal digits.
bool is_content_hash(const std::string& text);

// Hashes a stream of `size` bytes as `expected` was made: SHA-256 for 64 digits; for 40 SHA-1 of "blob SIZE", a zero
// byte and the content, as git has it.
class ContentHash {
 public:
  ContentHash(const std::string& expected, std::uint64_t size);
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void update(std::span<const std::byte> bytes);
  std::string hex_digest();  // the object is spent

 private:
  void* context_;  // EVP_MD_CTX
};

}  // namespace sdtune::app
