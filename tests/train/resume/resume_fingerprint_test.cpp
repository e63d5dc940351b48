#include "train/resume/resume_fingerprint.h"

#include <gtest/gtest.h>

#include <set>
#include <type_traits>

#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

// What commit 68da9cb compared, kept by hand in its kIdentityOptions.
constexpr const char* kComparedBefore[] = {
    "method",
    "seed",
    "train_text_encoder",
    "class_prompt",
    "with_prior_preservation",
    "resolution",
    "center_crop",
    "crop_style",
    "enable_bucket",
    "min_bucket_reso",
    "max_bucket_reso",
    "bucket_reso_steps",
    "bucket_no_upscale",
    "random_flip",
    "caption_dropout_rate",
    "rank",
    "lora_alpha",
    "lora_dropout",
    "lora_layers",
    "use_ema",
    "ema_decay",
    "snr_gamma",
    "image_interpolation_mode",
    "noise_offset",
    "rescale_betas_zero_snr",
    "learning_rate",
    "train_text_encoder_frac",
    "prior_loss_weight",
    "text_encoder_lr",
    "num_class_images",
    "class_num_inference_steps",
    "class_guidance_scale",
    "scale_lr",
    "lr_scheduler",
    "lr_warmup_steps",
    "lr_num_cycles",
    "lr_power",
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "adam_weight_decay",
    "lion_beta1",
    "lion_beta2",
    "prodigy_beta3",
    "prodigy_use_bias_correction",
    "prodigy_safeguard_warmup",
    "max_grad_norm",
    "mixed_precision",
    "loss_type",
    "masked_loss",
    "unmasked_weight",
    "normalize_masked_area_loss",
    "huber_c",
    "huber_schedule",
    "input_perturbation",
    "min_timestep",
    "max_timestep",
};

// Options that came later and change numbers are added here.
constexpr const char* kComparedSince[] = {
    "allow_tf32", "half_precision_gradient_sums", "vae_tiling", "comm_hook", "auto_caption_rate", "trainable_layers",
    "dco_beta"};

TEST(ResumeFingerprint, ComparesWhatItEverDidAndAllowTf32) {
  std::set<std::string> names = {"optimizer"};
  for (const char* name : kComparedBefore) names.insert(name);
  for (const char* name : kComparedSince) names.insert(name);
  std::set<std::string> compared;
  for (const auto& [name, value] : fingerprint_settings(TrainConfig())) compared.insert(name);
  EXPECT_EQ(compared, names);
}

template <typename Group>
concept TakesAnOptionWithoutRule = requires(Group group, bool* value) {
  group.add("name", value, "help");
};
static_assert(TakesAnOptionWithoutRule<OptionGroup>);
static_assert(!TakesAnOptionWithoutRule<TrainOptionGroup>, "an option of training must say its resume rule");
static_assert(!std::is_constructible_v<TrainFieldList, FieldList>, "nor may it be declared past the group");

TEST(ResumeFingerprint, EveryOptionOfTrainingHasARule) {
  TrainConfig config;
  for (const Field& field : config.fields()) EXPECT_TRUE(field.info.resume.has_value()) << field.info.name;
}

// Version 68da9cb did not record it, so its checkpoints cannot refuse it.
TEST(ResumeFingerprint, ComparesAllowTf32WhereTheCheckpointHoldsIt) {
  TrainConfig with;
  with.precision.allow_tf32 = true;
  ResumeFingerprint saved, now;
  saved.settings = fingerprint_settings(TrainConfig());
  now.settings = fingerprint_settings(with);
  EXPECT_EQ(fingerprint_changes(completed_fingerprint(saved, now), now).size(), 1U);
  saved.settings.erase("allow_tf32");
  EXPECT_TRUE(fingerprint_changes(completed_fingerprint(saved, now), now).empty());
}

// And it summed split batches in half precision without an option.
TEST(ResumeFingerprint, BelievesSumsOfCheckpointsThatDoNotHoldTheirOption) {
  TrainConfig halves;
  halves.precision.half_precision_gradient_sums = true;
  ResumeFingerprint saved, now;
  saved.settings = fingerprint_settings(TrainConfig());
  now.settings = fingerprint_settings(halves);
  EXPECT_EQ(fingerprint_changes(completed_fingerprint(saved, now), now).size(), 1U);
  saved.settings.erase("allow_tf32");
  saved.settings.erase("half_precision_gradient_sums");
  for (const char* name : {"vae_tiling", "comm_hook", "auto_caption_rate", "trainable_layers", "dco_beta"})
    saved.settings.erase(name);
  EXPECT_TRUE(fingerprint_changes(completed_fingerprint(saved, now), now).empty());
  EXPECT_EQ(always_recorded(now), saved);  // so evaluations of those versions are found again
  now.images["1.png"] = "hash";
  EXPECT_EQ(fingerprint_changes(completed_fingerprint(saved, now), now).size(), 1U);
}

// Versions without the option did what its default does: their runs resume with that, and not with `changed`.
void expect_known(const char* option, const TrainConfig& changed) {
  ResumeFingerprint saved, same, other;
  same.settings = saved.settings = fingerprint_settings(TrainConfig());
  other.settings = fingerprint_settings(changed);
  saved.settings.erase(option);
  EXPECT_TRUE(fingerprint_changes(completed_fingerprint(saved, same), same).empty()) << option;
  EXPECT_EQ(fingerprint_changes(completed_fingerprint(saved, other), other).size(), 1U) << option;
  EXPECT_EQ(always_recorded(same), always_recorded(saved))
      << option;  // so evaluations of those versions are found again
  EXPECT_NE(always_recorded(other), always_recorded(saved)) << option;
}

TEST(ResumeFingerprint, KnowsWhatVersionsWithoutAnOptionDid) {
  TrainConfig tiles, captions, attention, consistency;
  tiles.data.vae_tiling = true;
  expect_known("vae_tiling", tiles);
  captions.data.auto_caption_rate = 0.5;
  expect_known("auto_caption_rate", captions);
  attention.run.trainable_layers = {"to_q"};
  expect_known("trainable_layers", attention);
  consistency.objective.dco_beta = 10;
  expect_known("dco_beta", consistency);
}

// Nor did they send gradients in bfloat16.
TEST(ResumeFingerprint, ComparesCommHookWithVersionsWithoutIt) {
  TrainConfig sends_bfloat16;
  sends_bfloat16.dist.comm_hook = "bf16";
  ResumeFingerprint saved, now;
  saved.settings = fingerprint_settings(TrainConfig());
  now.settings = fingerprint_settings(sends_bfloat16);
  saved.settings.erase("comm_hook");
  EXPECT_EQ(fingerprint_changes(completed_fingerprint(saved, now), now).size(), 1U);
  EXPECT_NE(always_recorded(now), always_recorded(saved));
}

TEST(ResumeFingerprint, HoldsWhatChangesNumbersOnly) {
  TrainConfig config;
  const auto before = fingerprint_settings(config);
  config.run.gradient_checkpointing = true;
  config.checkpoint.checkpointing_steps = 7;
  config.run.max_train_steps = 50;
  EXPECT_EQ(fingerprint_settings(config), before);
  config.optim.learning_rate = 1e-3;
  EXPECT_NE(fingerprint_settings(config), before);
}

TEST(ResumeFingerprint, HoldsTheLengthOfACurveThatDependsOnIt) {
  TrainConfig config;
  config.optim.lr_scheduler = "cosine";
  config.run.max_train_steps = 50;
  const auto before = fingerprint_settings(config);
  config.run.max_train_steps = 60;
  EXPECT_NE(fingerprint_settings(config), before);
}

TEST(ResumeFingerprint, TakesOptionsThatTheCheckpointDoesNotKnowAsLeftAlone) {
  ResumeFingerprint saved, now;
  now.settings = saved.settings = fingerprint_settings(TrainConfig());
  saved.settings.erase("loss_type");
  EXPECT_FALSE(fingerprint_changes(saved, now).empty());
  EXPECT_TRUE(fingerprint_changes(completed_fingerprint(saved, now), now).empty());
  TrainConfig changed;
  changed.objective.loss_type = "huber";
  now.settings = fingerprint_settings(changed);
  EXPECT_EQ(fingerprint_changes(completed_fingerprint(saved, now), now).size(), 1U);
}

TEST(ResumeFingerprint, FollowsThePhotosAndTheirCaptions) {
  Photo photo;
  photo.path = "a/00.jpg";
  photo.sha256 = "hash";
  photo.caption = "a photo";
  Photo other = photo;
  other.caption = "another";
  EXPECT_NE(fingerprint_images({photo}, {}, false), fingerprint_images({other}, {}, false));
  Photo moved = photo;
  moved.path = "b/00.jpg";
  EXPECT_EQ(fingerprint_images({photo}, {}, false), fingerprint_images({moved}, {}, false));
}

TEST(ResumeFingerprint, HashesTheBaseByContent) {
  const test::ScratchFolder first;
  const test::ScratchFolder second;
  for (const test::ScratchFolder* folder : {&first, &second}) folder->write("unet/config.json", "{}");
  EXPECT_EQ(hash_of_base(first.path()), hash_of_base(second.path()));
  second.write("unet/config.json", "{ }");
  EXPECT_NE(hash_of_base(first.path()), hash_of_base(second.path()));
}

}  // namespace
}  // namespace sdtune::train
