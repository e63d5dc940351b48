// Base64 (RFC 4648), for images inside pages and for the hub's requests.
#pragma once

#include <string>
#include <string_view>

namespace sdtune {

// With padding.
std::string base64(std::string_view bytes);

}  // namespace sdtune
