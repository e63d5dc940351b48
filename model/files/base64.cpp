#include "model/files/base64.h"

#include <openssl/evp.h>

namespace sdtune {

std::string base64(std::string_view bytes) {
  std::string text;
  constexpr std::size_t kPiece = 3 << 20;  // a multiple of 3, so that pieces join
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    const std::string_view piece = bytes.substr(at, kPiece);
    std::string encoded((piece.size() + 2) / 3 * 4 + 1, '\0');
    const int length =
        EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                        reinterpret_cast<const unsigned char*>(piece.data()), static_cast<int>(piece.size()));
    text.append(encoded, 0, static_cast<std::size_t>(length));
  }
  return text;
}

}  // namespace sdtune
