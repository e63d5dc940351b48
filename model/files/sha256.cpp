#include "model/files/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace sdtune {
namespace {

void require(int openssl_result) {
  if (openssl_result != 1) throw std::runtime_error("OpenSSL refused SHA-256");
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  require(EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_), EVP_sha256(), nullptr));
}

Sha256::~Sha256() {
  EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_));
}

void Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), bytes.data(), bytes.size()));
}

std::string Sha256::hex_digest() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  require(EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_), digest.data(), &size));
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(bytes)));
  return hash.hex_digest();
}

std::string sha256_of_file(const std::filesystem::path& path, PageCache cache) {
  Sha256 hash;
  read_pieces(path, cache, [&hash](std::span<const std::byte> piece) { hash.update(piece); });
  return hash.hex_digest();
}

}  // namespace sdtune
