// What is wrong with a set of photos although each of them can be read: duplicates, blur, sizes, faces, identity
// outliers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/data/crop_rule.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {

// What should be checked in a photo. Nothing here stops a run.
struct Diagnosis {
  std::vector<Problem> warnings;   // each with the photo, what is to be seen in it, and what to do
  std::vector<std::string> notes;  // what was done or could not be done: turned by EXIF, faces not searched for
};

// Examined photos (PhotoAnalyzer) cut by `rule`. Finds near-duplicates, blur, photos that must be enlarged, no face,
// more than one face, a head that the crop cuts, the one grey photo among coloured ones, and photos of another person
// (identity_outliers.h, with `same_from` as there) where examinations say who they show. Faces are not missed in images
// that sdtune rendered, nor where no photo has one. `trouble`: why faces were not searched for
// (PhotoAnalyzer::trouble).
Diagnosis diagnose(const std::vector<Photo>& photos, const CropRule& rule, bool crops_faces, const std::string& trouble,
                   std::optional<double> same_from = std::nullopt);

// What a photo's crop is to show: its head, or where that is larger than the crop its face; unset without a face.
std::optional<model::ImageBox> face_to_show(const Photo& photo, const CropRule& rule);

}  // namespace sdtune::train
