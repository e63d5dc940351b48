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
  FieldInfo images = photo_field("images", "Folder with the photos of the subject (JPEG, PNG or WebP).");
  images.aliases = {"instance_data_dir"};
  images.placeholder = "DIR";
  FieldInfo prompt = photo_field("instance_prompt", "What a photo without its own .txt caption is described as.");
  prompt.placeholder = "TEXT";
  FieldInfo dropout = photo_field("caption_dropout_rate",
                                  "Share of the photos drawn that are trained without words, which guidance starts "
                                  "from; class pictures keep theirs.");
  dropout.aliases = {"proportion_empty_prompts", "caption_dropout_probability"};
  dropout.min = 0;
  dropout.max = 1;
  FieldInfo bad = photo_field("on_bad_image", "What to do when a photo cannot be read: stop, or skip it and say so.");
  bad.choices = {"stop", "skip"};
  FieldInfo resolution =
      photo_field("resolution", "Side of the square that a photo is resized and cropped to; none: the base's own.");
  resolution.unit = "px";
  resolution.min = 8;
  resolution.max = 4096;
  FieldInfo interpolation = photo_field("image_interpolation_mode", "Filter that resizes the photos (antialiased).");
  interpolation.choices = {"bilinear", "bicubic", "lanczos"};
  list.push_back({std::move(images), &options.images});
  list.push_back({std::move(prompt), &options.instance_prompt});
  list.push_back({photo_field("use_captions", "Take a photo's caption from the .txt file of the same name, if any."),
                  &options.use_captions});
  list.push_back({std::move(dropout), &options.caption_dropout_rate});
  list.push_back({std::move(bad), &options.on_bad_image});
  list.push_back({std::move(resolution), &options.resolution});
  list.push_back({photo_field("center_crop", "Crop the middle; false crops at random and switches the cache off."),
                  &options.center_crop});
  list.push_back({photo_field("random_flip", "Mirror half of the pictures drawn (faces are not symmetric)."),
                  &options.random_flip});
  list.push_back({std::move(interpolation), &options.image_interpolation_mode});
  list.push_back({photo_field("cache_latents", "Encode each picture once, before training, instead of at every step."),
                  &options.cache_latents});
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
  list.push_back({class_field("with_prior_preservation", "Train on class pictures too, so that the class is not lost."),
                  &options.with_prior_preservation});
  list.push_back({std::move(prompt), &options.class_prompt});
  list.push_back({std::move(folder), &options.class_data_dir});
  list.push_back({std::move(count), &options.num_class_images});
  list.push_back({std::move(batch), &options.sample_batch_size});
}

}  // namespace

FieldList DataOptions::fields() {
  FieldList list;
  add_photo_fields(*this, list);
  add_class_fields(*this, list);
  return list;
}

}  // namespace sdtune::train
