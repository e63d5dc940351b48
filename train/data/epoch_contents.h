// What one epoch consists of, in words: with repeats, subfolders, buckets and class images one should not have to
// guess.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/image/bucket.h"
#include "train/data/batch_plan.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {

// Lines for the user: the photos of each folder with their repeats, the steps of an epoch, how much of the class
// images an epoch sees. Needs a photo.
std::vector<std::string> describe_epoch(const std::vector<Photo>& photos, std::int64_t class_images,
                                        const BatchShape& shape);

// A line on the photos that have an automatic caption, with the first one's caption; empty where there is none.
std::string describe_auto_captions(const std::vector<Photo>& photos);

// A line on the buckets, from the size of each photo (px): how many photos each has; empty when all are alike.
std::string describe_buckets(const std::vector<model::ImageSize>& sizes, std::int64_t batch);

}  // namespace sdtune::train
