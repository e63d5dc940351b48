#include "train/objective/zero_terminal_snr.h"

#include <gtest/gtest.h>

#include "model/pipeline/text_to_image.h"
#include "tests/support/tiny_bundle.h"

namespace sdtune::train {
namespace {

TEST(ZeroTerminalSnr, ClipsNoLatentsWhereTheSchedulerBecomesDdim) {
  const test::ScratchFolder scratch;
  for (const bool xl : {false, true}) {
    model::ModelBundle bundle = test::make_tiny_bundle(scratch, xl);
    bundle.scheduler_class = "LMSDiscreteScheduler";  // which has no clip_sample
    bundle.scheduler_config = {{"_class_name", "LMSDiscreteScheduler"}, {"prediction_type", "v_prediction"}};
    EXPECT_NE(rescale_to_zero_snr(bundle), "");
    EXPECT_EQ(bundle.scheduler_class, "DDIMScheduler");
    EXPECT_EQ(bundle.scheduler_config["clip_sample"], false);
    EXPECT_EQ(model::make_sampler(bundle)->config()["clip_sample"], false);
    EXPECT_EQ(model::make_sampler(bundle)->config()["rescale_betas_zero_snr"], true);
  }
}

TEST(ZeroTerminalSnr, KeepsTheClippingThatWasGiven) {
  const test::ScratchFolder scratch;
  model::ModelBundle bundle = test::make_tiny_bundle(scratch, true);
  bundle.scheduler_class = "PNDMScheduler";
  bundle.scheduler_config = {{"prediction_type", "v_prediction"}, {"clip_sample", true}};
  rescale_to_zero_snr(bundle);
  EXPECT_EQ(bundle.scheduler_config["clip_sample"], true);
  bundle.scheduler_class = "DDIMScheduler";  // its own default is left to it
  bundle.scheduler_config = {{"prediction_type", "v_prediction"}};
  EXPECT_EQ(rescale_to_zero_snr(bundle), "");
  EXPECT_FALSE(bundle.scheduler_config.contains("clip_sample"));
}

}  // namespace
}  // namespace sdtune::train
