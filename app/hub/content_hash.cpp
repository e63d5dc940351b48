#include "app/hub/content_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace sdtune::app {
namespace {

void require(int openssl_result) {
  if (openssl_result != 1) throw std::runtime_error("OpenSSL refused a hash");
}

EVP_MD_CTX* context_of(void* context) {
  return static_cast<EVP_MD_CTX*>(context);
}

}  // namespace

bool is_content_hash(const std::string& text) {
  return (text.size() == 64 || text.size() == 40) && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

ContentHash::ContentHash(const std::string& expected, std::uint64_t size) : context_(EVP_MD_CTX_new()) {
  const bool is_git = expected.size() == 40;
  require(EVP_DigestInit_ex(context_of(context_), is_git ? EVP_sha1() : EVP_sha256(), nullptr));
  if (!is_git) return;
  const std::string start = fmt::format("blob {}", size) + '\0';
  update(std::as_bytes(std::span(start)));
}

ContentHash::~ContentHash() {
  EVP_MD_CTX_free(context_of(context_));
}

void ContentHash::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(context_of(context_), bytes.data(), bytes.size()));
}

std::string ContentHash::hex_digest() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  require(EVP_DigestFinal_ex(context_of(context_), digest.data(), &size));
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace sdtune::app
