#include "app/commands/web_names.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>

#include "app/commands/sampler_names.h"

namespace sdtune::app {
namespace {

TEST(WebNames, EachSamplerComesBack) {
  for (const std::string& name : sampler_names()) {
    const std::string text = web_sampler_text(name);
    const std::string mark = ", Schedule type: ";
    const std::size_t comma = text.find(mark);
    const std::string schedule = comma == std::string::npos ? "" : text.substr(comma + mark.size());
    EXPECT_EQ(sampler_of_web(text.substr(0, comma), schedule), name) << text;
    EXPECT_NE(text, name);
  }
}

TEST(WebNames, ReadsOldTextsAndRefusesStrangers) {
  EXPECT_EQ(sampler_of_web("DPM++ 2M Karras", ""), "dpm++2m_karras");
  EXPECT_EQ(sampler_of_web("Euler a", "Automatic"), "euler_a");
  EXPECT_EQ(sampler_of_web("DPM adaptive", ""), std::nullopt);
  EXPECT_EQ(sampler_of_web("DDIM", "Karras"), std::nullopt);
  EXPECT_EQ(web_sampler_of_class("PNDMScheduler"), "PLMS");
  EXPECT_EQ(web_sampler_of_class("SomeScheduler"), "SomeScheduler");
}

}  // namespace
}  // namespace sdtune::app
