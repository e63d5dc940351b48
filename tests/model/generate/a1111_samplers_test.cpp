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
}

// "DPM++ 2M" alone would be read as Karras since version 1.9.
TEST(A1111Samplers, OfAModelsOwnSchedulerSayItsSchedule) {
  const Json plain = Json::object(), karras = {{"use_karras_sigmas", true}},
             trailing = {{"timestep_spacing", "trailing"}};
  const std::string multistep = "DPMSolverMultistepScheduler";
  EXPECT_EQ(a1111_sampler_of_class("PNDMScheduler", plain), "PLMS");
  EXPECT_EQ(a1111_sampler_of_class("SomeScheduler", karras), "SomeScheduler");
  EXPECT_EQ(a1111_sampler_of_class(multistep, plain), "DPM++ 2M, Schedule type: Uniform");
  EXPECT_EQ(a1111_sampler_of_class(multistep, karras), "DPM++ 2M, Schedule type: Karras");
  EXPECT_EQ(a1111_sampler_of_class(multistep, {{"use_exponential_sigmas", true}, {"timestep_spacing", "trailing"}}),
            "DPM++ 2M, Schedule type: Exponential");
  EXPECT_EQ(a1111_sampler_of_class(multistep, {{"algorithm_type", "sde-dpmsolver++"}}),
            "DPM++ 2M SDE, Schedule type: Uniform");
  EXPECT_EQ(a1111_sampler_of_class("EulerDiscreteScheduler", trailing), "Euler, Schedule type: SGM Uniform");
  EXPECT_EQ(a1111_sampler_of_class("EulerAncestralDiscreteScheduler", karras), "Euler a");  // which has no curve
}

}  // namespace
}  // namespace sdtune::model
