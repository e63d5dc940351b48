#include "train/data/data_options.h"

#include <utility>

namespace sdtune::train {

namespace {

FieldInfo photo_field(std::string name, std::string help) {
  return {.name = std::move(name), .help = std::move(help), .group = "Photos"};
}

FieldInfo class_field(std::string name, std::string help) {
  return {.name = std::move(name), .help = std::move(help), .group = "Prior preservation"};
}

void add_photo_fields(DataOptions& options, FieldList& list) {
  FieldInfo images = photo_field(
      "images", "Folder with the photos of the subject (JPEG, PNG, WebP, or HEIC where libheif is installed).");
  images.aliases = {"instance_data_dir"};
  images.placeholder = "DIR";
  FieldInfo prompt = photo_field("instance_prompt", "What a photo without its own .txt caption is described as.");
  prompt.placeholder = "TEXT";
  FieldInfo concepts = photo_field("concepts",
                                   "Several subjects in one run, in place of images: a mapping each, of images, "
                                   "instance_prompt, class_prompt, class_data_dir, num_class_images and repeats; what "
                                   "one leaves out comes from the option of that name.");
  concepts.aliases = {"concepts_list"};
  concepts.placeholder = "JSON";
  FieldInfo repeats = photo_field("repeats",
                                  "How often an epoch shows each photo; a subfolder named as kohya's, 10_sks person, "
                                  "multiplies it by its number and gives its photos the words as prompt.");
  repeats.min = 1;
  repeats.max = 10000;
  FieldInfo trigger = photo_field("trigger_word",
                                  "Stands for [trigger] in captions, and leads those that do not say it. Empty: the "
                                  "subject's words of instance_prompt stand for [trigger], and nothing is added.");
  trigger.placeholder = "TEXT";
  FieldInfo dropout = photo_field("caption_dropout_rate",
                                  "Share of the photos drawn that are trained without words, which guidance starts "
                                  "from; class pictures keep theirs.");
  dropout.aliases = {"proportion_empty_prompts", "caption_dropout_probability"};
  dropout.min = 0;
  dropout.max = 1;
  FieldInfo bad = photo_field("on_bad_image", "What to do when a photo cannot be read: stop, or skip it and say so.");
  bad.choices = {"stop", "skip"};
  list.push_back({std::move(images), &options.images});
  list.push_back({std::move(prompt), &options.instance_prompt});
  list.push_back({std::move(concepts), &options.concepts});
  list.push_back({std::move(repeats), &options.repeats});
  list.push_back(
      {photo_field("use_captions",
                   "Take a photo's caption from the .txt file of its name, else from metadata.jsonl, if any."),
       &options.use_captions});
  list.push_back({std::move(trigger), &options.trigger_word});
  list.push_back({std::move(dropout), &options.caption_dropout_rate});
  list.push_back({std::move(bad), &options.on_bad_image});
}

void add_shape_fields(DataOptions& options, FieldList& list) {
  FieldInfo resolution =
      photo_field("resolution", "Side of the square that a photo is resized and cropped to; none: the base's own.");
  resolution.unit = "px";
  resolution.min = 8;
  resolution.max = 4096;
  FieldInfo interpolation = photo_field("image_interpolation_mode", "Filter that resizes the photos (antialiased).");
  interpolation.choices = {"bilinear", "bicubic", "lanczos"};
  list.push_back({std::move(resolution), &options.resolution});
  list.push_back({photo_field("center_crop", "Crop the middle; false crops at random and switches the cache off."),
                  &options.center_crop});
  list.push_back({photo_field("random_flip", "Mirror half of the pictures drawn (faces are not symmetric)."),
                  &options.random_flip});
  list.push_back({std::move(interpolation), &options.image_interpolation_mode});
  list.push_back({photo_field("cache_latents", "Encode each picture once, before training, instead of at every step."),
                  &options.cache_latents});
  FieldInfo folder =
      photo_field("cache_dir",
                  "Folder that keeps encoded pictures and captions between runs; entries of other "
                  "pictures, crops or weights are never used. Empty: what prepare left in the run folder.");
  folder.placeholder = "DIR";
  list.push_back({std::move(folder), &options.cache_dir});
}

void add_crop_fields(DataOptions& options, FieldList& list) {
  FieldInfo style =
      photo_field("crop_style",
                  "Which part of a photo is kept: its middle, the whole head (the middle where no face is "
                  "found), or a random part, which switches the cache off; none: as center_crop says.");
  style.choices = {"center", "face", "random"};
  FieldInfo model = photo_field(
      "face_model", "What finds faces: a cascade (.xml) or a YuNet network (.onnx). Empty: OpenCV's cascades.");
  model.placeholder = "FILE";
  list.push_back({std::move(style), &options.crop_style});
  list.push_back({std::move(model), &options.face_model});
}

FieldInfo bucket_side(std::string name, std::string help) {
  FieldInfo info{.name = std::move(name), .help = std::move(help), .group = "Buckets", .unit = "px"};
  info.min = 8;
  info.max = 8192;
  return info;
}

void add_bucket_fields(DataOptions& options, FieldList& list) {
  const std::string group = "Buckets";
  list.push_back(
      {{.name = "enable_bucket",
        .help = "Keep each photo's shape: it is cut to the nearest of several rectangles of at most resolution "
                "x resolution pixels, and all photos of a step have the same one.",
        .group = group},
       &options.enable_bucket});
  list.push_back({bucket_side("min_bucket_reso", "Shortest side of a bucket; none: half of resolution."),
                  &options.min_bucket_reso});
  list.push_back(
      {bucket_side("max_bucket_reso", "Longest side of a bucket; none: twice resolution."), &options.max_bucket_reso});
  list.push_back(
      {bucket_side("bucket_reso_steps", "Sides of buckets are multiples of it; none: what VAE and UNet halve."),
       &options.bucket_reso_steps});
  list.push_back({{.name = "bucket_no_upscale",
                   .help = "Never enlarge a photo for its bucket, unless a side is shorter than min_bucket_reso.",
                   .group = group},
                  &options.bucket_no_upscale});
}

void add_class_fields(DataOptions& options, FieldList& list) {
  FieldInfo prompt = class_field("class_prompt", "Describes the class that the subject belongs to.");
  prompt.placeholder = "TEXT";
  FieldInfo folder =
      class_field("class_data_dir", "Folder of the class pictures; missing ones are generated. Empty: the run's own.");
  folder.placeholder = "DIR";
  FieldInfo count = class_field("num_class_images", "Number of class pictures.");
  count.min = 1;
  count.max = 100000;
  FieldInfo batch = class_field("sample_batch_size", "Class pictures that are generated at once.");
  batch.min = 1;
  batch.max = 1024;
  FieldInfo steps = class_field("class_num_inference_steps", "Steps in which a class picture is drawn.");
  steps.min = 1;
  steps.max = 1000;
  FieldInfo guidance = class_field("class_guidance_scale",
                                   "Guidance of the class pictures: 1 draws the class as varied as the base knows it, "
                                   "more draws it clearer and more alike.");
  guidance.min = 0;
  guidance.max = 100;
  list.push_back({class_field("with_prior_preservation", "Train on class pictures too, so that the class is not lost."),
                  &options.with_prior_preservation});
  list.push_back({std::move(prompt), &options.class_prompt});
  list.push_back({std::move(folder), &options.class_data_dir});
  list.push_back({std::move(count), &options.num_class_images});
  list.push_back({std::move(batch), &options.sample_batch_size});
  list.push_back({std::move(steps), &options.class_num_inference_steps});
  list.push_back({std::move(guidance), &options.class_guidance_scale});
}

}  // namespace

std::string DataOptions::crop() const {
  return crop_style.value_or(center_crop ? "center" : "random");
}

FieldList DataOptions::fields() {
  FieldList list;
  add_photo_fields(*this, list);
  add_shape_fields(*this, list);
  add_crop_fields(*this, list);
  add_bucket_fields(*this, list);
  add_class_fields(*this, list);
  return list;
}

}  // namespace sdtune::train
