#include "train/observe/html_text.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

TEST(HtmlText, EscapesWhatHtmlReads) {
  EXPECT_EQ(html_escaped("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
}

TEST(HtmlImage, IsNothingWithoutTheFile) {
  EXPECT_EQ(html_image("nowhere.png", "x"), "");
}

}  // namespace
}  // namespace sdtune::train
