#include "train/observe/html_text.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

TEST(HtmlText, EscapesWhatHtmlReads) {
  EXPECT_EQ(html_escaped("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
}

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

TEST(HtmlImage, IsNothingWithoutTheFile) {
  EXPECT_EQ(html_image("nowhere.png", "x"), "");
}

}  // namespace
}  // namespace sdtune::train
