#include "train/plan/probe_settings.h"

#include <gtest/gtest.h>

#include "train/config/concept_options.h"

namespace sdtune::train {
namespace {

TEST(ProbeSettings, NothingIsSentOrWrittenElsewhere) {
  TrainConfig config;
  config.observe.report_to = {"wandb"};
  config.observe.report_model = true;
  config.rental.on_finish = "sudo shutdown -h now";
  config.data.class_data_dir = "/data/class";
  config.data.num_class_images = 200;
  config.data.concepts = {R"({"images": "a", "class_data_dir": "/data/a", "num_class_images": 300})",
                          R"({"images": "b", "class_prompt": "a dog"})"};
  isolate_probe(config, 4);
  EXPECT_EQ(config.observe.report_to, std::vector<std::string>{"none"});
  EXPECT_FALSE(config.observe.report_model);
  EXPECT_EQ(config.rental.on_finish, "");
  for (const ConceptOptions& subject : concepts_of(config.data)) {
    EXPECT_EQ(subject.class_data_dir, "") << subject.images;
    EXPECT_EQ(subject.num_class_images, 4) << subject.images;
  }
  EXPECT_EQ(concepts_of(config.data)[1].class_prompt, "a dog");
}

TEST(ProbeSettings, WhatOnlyAWholeRunCanDoIsLeftOut) {
  TrainConfig config;
  config.identity.identity_steps = 100;
  config.identity.identity_model = "recognizer.onnx";
  config.identity.early_stop_patience = 3;
  config.optim.lr_scheduler = "cosine";
  config.optim.lr_warmup_steps = 500;
  isolate_probe(config, 4);
  EXPECT_FALSE(config.identity.identity_steps);
  EXPECT_EQ(config.identity.identity_model, "");
  EXPECT_FALSE(config.identity.early_stop_patience);
  EXPECT_EQ(config.optim.lr_scheduler, "constant");
  EXPECT_EQ(config.optim.lr_warmup_steps, 0);
}

}  // namespace
}  // namespace sdtune::train
