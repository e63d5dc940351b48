#include "model/files/base64.h"

#include <gtest/gtest.h>

#include <utility>

namespace sdtune {
namespace {

// RFC 4648, section 10.
TEST(Base64, IsTheStandards) {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"},
                                                       {"\xff\xfe\xfd", "//79"}};
  for (const auto& [bytes, text] : cases) EXPECT_EQ(base64(bytes), text);
}

// Longer than what OpenSSL is given at once: the pieces must join without padding between them.
TEST(Base64, JoinsItsPieces) {
  const std::string bytes((3 << 20) + 1, 'a');
  const std::string text = base64(bytes);
  EXPECT_EQ(text.size(), (bytes.size() + 2) / 3 * 4);
  EXPECT_EQ(text.find('='), text.size() - 2);
  EXPECT_EQ(text.substr((4 << 20) - 4), "YWFhYQ==");
}

}  // namespace
}  // namespace sdtune
