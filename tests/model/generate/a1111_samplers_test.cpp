#include "model/generate/a1111_samplers.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>

#include "model/generate/sampler_names.h"

namespace sdtune::model {
namespace {

TEST(A1111Samplers, EachSamplerComesBack) {
  for (const std::string& name : sampler_names()) {
    const std::string text = a1111_sampler_text(name);
    const std::string mark = ", Schedule type: ";
    const std::size_t comma = text.find(mark);
    const std::string schedule = comma == std::string::npos ? "" : text.substr(comma + mark.size());
    EXPECT_EQ(sampler_of_a1111(text.substr(0, comma), schedule), name) << text;
    EXPECT_NE(text, name);
  }
}

TEST(A1111Samplers, ReadsOldTextsAndRefusesUnknownOnes) {
  EXPECT_EQ(sampler_of_a1111("DPM++ 2M Karras", ""), "dpm++2m_karras");
  EXPECT_EQ(sampler_of_a1111("Euler a", "Automatic"), "euler_a");
  EXPECT_EQ(sampler_of_a1111("DPM++ 2M", "Automatic"), "dpm++2m_karras");
  EXPECT_EQ(sampler_of_a1111("DPM++ SDE", "Automatic"), "dpm++sde_karras");
  EXPECT_EQ(sampler_of_a1111("DPM++ 2M SDE", "Automatic"), "dpm++2m_sde_exponential");
  EXPECT_EQ(sampler_of_a1111("DPM++ 2M", ""), "dpm++2m");  // of a version whose plain one has no type
  EXPECT_EQ(sampler_of_a1111("Euler a", "Uniform"), "euler_a");
  EXPECT_EQ(a1111_sampler_text("dpm++2m"), "DPM++ 2M, Schedule type: Uniform");
  EXPECT_EQ(a1111_sampler_text("euler"), "Euler");
  EXPECT_EQ(sampler_of_a1111("DPM adaptive", ""), std::nullopt);
  EXPECT_EQ(sampler_of_a1111("DDIM", "Karras"), std::nullopt);
  EXPECT_EQ(a1111_sampler_of_class("PNDMScheduler"), "PLMS");
  EXPECT_EQ(a1111_sampler_of_class("SomeScheduler"), "SomeScheduler");
}

}  // namespace
}  // namespace sdtune::model
