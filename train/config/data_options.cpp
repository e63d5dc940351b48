#include "train/config/data_options.h"

namespace sdtune::train {

namespace {

// Photos and captions are compared by content, whatever option they come from.
void add_photos(TrainOptionGroup& group, DataOptions& options) {
  group
      .add("images", &options.images, Resume::kMayChange,
           "Folder with photos of the subject (JPEG, PNG, WebP, or HEIC where libheif is installed).")
      .aliases({"instance_data_dir"})
      .placeholder("DIR");
  group
      .add("instance_prompt", &options.instance_prompt, Resume::kMayChange,
           "Caption of photos that have no caption of their own.")
      .placeholder("TEXT");
  group
      .add("concepts", &options.concepts, Resume::kMayChange,
           "Several subjects in one run, instead of images: for each a mapping of images, instance_prompt, "
           "class_prompt, class_data_dir, num_class_images and repeats; a missing key takes the value of the option "
           "of that name.")
      .aliases({"concepts_list"})
      .placeholder("JSON")
      .takes_mappings();
  group
      .add("repeats", &options.repeats, Resume::kMayChange,
           "How often each photo occurs in an epoch; a subfolder named as in kohya's scripts, 10_sks person, "
           "multiplies it by its number and gives its photos the words as prompt.")
      .range(1, kMostRepeats);
  group.add("use_captions", &options.use_captions, Resume::kMayChange,
            "Read a photo's caption from the .txt file of its name, else from metadata.jsonl, if there is one.");
}

void add_captions(TrainOptionGroup& group, DataOptions& options) {
  group
      .add("trigger_word", &options.trigger_word, Resume::kMayChange,
           "Replaces [trigger] in captions, and is put in front of captions that do not contain it. Empty: the "
           "subject's words of instance_prompt replace [trigger], and nothing is put in front.")
      .placeholder("TEXT");
  group
      .add("caption_dropout_rate", &options.caption_dropout_rate, Resume::kMustMatch,
           "Probability that a photo is trained with an empty prompt, for classifier-free guidance; class images "
           "keep their prompts.")
      .aliases({"proportion_empty_prompts", "caption_dropout_probability"})
      .range(0, 1);
  group
      .add("auto_caption_rate", &options.auto_caption_rate, Resume::kMustMatch,
           "Probability that a photo without a caption of its own is trained with what the portrait classifier sees "
           "besides the subject (clothes, hat, glasses, expression, place) behind its prompt, so that this is not "
           "learned as the subject's. For renders of sdtune alone: the classifier knows no others.")
      .range(0, 1);
  group
      .add("on_bad_image", &options.on_bad_image, Resume::kMayChange,
           "What to do when a photo cannot be read: stop, or skip it with a warning.")
      .choices({"stop", "skip"});
}

void add_shape(TrainOptionGroup& group, DataOptions& options) {
  group
      .add("resolution", &options.resolution, Resume::kMustMatch,
           "Side of the square that photos are resized and cropped to; unset: the base's own.")
      .unit("px")
      .range(8, 4096);
  group.add("center_crop", &options.center_crop, Resume::kMustMatch,
            "Crop the center; false crops at random and disables the latent cache.");
  group.add("random_flip", &options.random_flip, Resume::kMustMatch,
            "Mirror each image with probability 0.5 (faces are not symmetric).");
  group
      .add("image_interpolation_mode", &options.image_interpolation_mode, Resume::kMustMatch,
           "Filter that resizes the photos (antialiased).")
      .choices({"bilinear", "bicubic", "lanczos"});
  group
      .add("crop_style", &options.crop_style, Resume::kMustMatch,
           "Part of a photo that is kept: center, face (the whole head; the center where no face is found) or "
           "random, which disables the latent cache; unset: as center_crop says.")
      .choices({"center", "face", "random"});
  group
      .add("face_model", &options.face_model, Resume::kMayChange,  // the faces found are compared
           "Face detector: a cascade (.xml) or a YuNet network (.onnx). Empty: OpenCV's cascades.")
      .placeholder("FILE");
}

void add_cache(TrainOptionGroup& group, DataOptions& options) {
  group.add(
      "vae_tiling", &options.vae_tiling, Resume::kMustMatch,
      "Encode and decode images above the VAE's sample_size in blended tiles: less memory, slightly other values.");
  group.add("cache_latents", &options.cache_latents, Resume::kMayChange,
            "Encode each image once, before training, instead of at every step.");
  group
      .add("cache_dir", &options.cache_dir, Resume::kMayChange,
           "Folder that keeps encoded images and captions between runs; entries of other images, crops or weights "
           "are never used. Empty: the folder that prepare wrote into the run folder.")
      .placeholder("DIR");
}

void add_buckets(TrainOptionGroup group, DataOptions& options) {
  constexpr double kShortest = 8, kLongest = 8192;
  group.add("enable_bucket", &options.enable_bucket, Resume::kMustMatch,
            "Keep each photo's aspect ratio: it is cropped to the nearest of several rectangles of at most resolution "
            "x resolution pixels, and all photos of a step have the same one.");
  group
      .add("min_bucket_reso", &options.min_bucket_reso, Resume::kMustMatch,
           "Shortest side of a bucket; unset: half of resolution.")
      .unit("px")
      .range(kShortest, kLongest);
  group
      .add("max_bucket_reso", &options.max_bucket_reso, Resume::kMustMatch,
           "Longest side of a bucket; unset: twice resolution.")
      .unit("px")
      .range(kShortest, kLongest);
  group
      .add("bucket_reso_steps", &options.bucket_reso_steps, Resume::kMustMatch,
           "Sides of buckets are multiples of it; unset: the downsampling factor of VAE and UNet.")
      .unit("px")
      .range(kShortest, kLongest);
  group.add("bucket_no_upscale", &options.bucket_no_upscale, Resume::kMustMatch,
            "Never enlarge a photo to fit its bucket, unless a side is shorter than min_bucket_reso.");
}

void add_class_images(TrainOptionGroup group, DataOptions& options) {
  group.add("with_prior_preservation", &options.with_prior_preservation, Resume::kMustMatch,
            "Train on class images too, so that the model keeps the class; missing class images are generated before "
            "training.");
  group
      .add("class_prompt", &options.class_prompt, Resume::kMustMatch,
           "Prompt of the class that the subject belongs to.")
      .placeholder("TEXT");
  group
      .add("class_data_dir", &options.class_data_dir, Resume::kMayChange,  // the images are compared by content
           "Folder of the class images; missing ones are generated. Empty: class_images in the run folder.")
      .placeholder("DIR");
  group.add("num_class_images", &options.num_class_images, Resume::kMustMatch, "Number of class images.")
      .range(1, kMostClassImages);
  group.add("sample_batch_size", &options.sample_batch_size, Resume::kMayChange, "Class images generated at once.")
      .range(1, 1024);
  group
      .add("class_num_inference_steps", &options.class_num_inference_steps, Resume::kMustMatch,
           "Sampling steps of a class image.")
      .unit("steps")
      .range(1, 1000);
  group
      .add("class_guidance_scale", &options.class_guidance_scale, Resume::kMustMatch,
           "Guidance scale of the class images: 1 keeps the variety of the class in the base, higher values give "
           "clearer and more similar images; unset: 7.5, for SDXL 5.")
      .range(0, 100);
}

}  // namespace

std::string DataOptions::crop() const {
  return crop_style.value_or(center_crop ? "center" : "random");
}

TrainFieldList DataOptions::fields() {
  TrainFieldList list;
  TrainOptionGroup group(list, "Photos");
  add_photos(group, *this);
  add_captions(group, *this);
  add_shape(group, *this);
  add_cache(group, *this);
  add_buckets({list, "Aspect ratio buckets"}, *this);
  add_class_images({list, "Prior preservation"}, *this);
  return list;
}

}  // namespace sdtune::train
