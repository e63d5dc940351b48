// The figures of one set of images, by name.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/portrait/evaluate/estimate.h"

namespace sdtune::train::evaluate {

// In the order of the table. Images of the subject first, then images of the class.
inline constexpr const char* kPromptFidelity = "prompt_fidelity";  // P: asked attributes that the classifier reads back
inline constexpr const char* kSubjectFidelity = "subject_fidelity";  // S: 0 like other people, 1 like new renders
inline constexpr const char* kAccepted = "accepted";                 // at the classifier's threshold for 1 % impostors
inline constexpr const char* kAttributeMatch = "attribute_match";    // A: mean of the next four
inline constexpr const char* kHairStyle = "hair_style";
inline constexpr const char* kHairColor = "hair_color";
inline constexpr const char* kFacialHair = "facial_hair";
inline constexpr const char* kSkinTone = "skin_tone";      // error below 0.25
inline constexpr const char* kMarksMatch = "marks_match";  // A: mean of the next three, of marks that the subject has
inline constexpr const char* kStreak = "streak";
inline constexpr const char* kBirthmark = "birthmark";
inline constexpr const char* kEarrings = "earrings";
// Gradient energy inside the face, against renders of the subject: followed by the name of a band (face_sharpness.h).
inline constexpr const char* kSharpness = "sharpness_";
inline constexpr const char* kCopied = "copied";                        // C: nearer to a photo than 99 % of renders
inline constexpr const char* kRepeatedContext = "repeated_context";     // C: a photo's place and clothes, unasked
inline constexpr const char* kClassFidelity = "class_prompt_fidelity";  // D: P of the same prompts without the subject
inline constexpr const char* kClassDiversity = "class_diversity";       // D: bits, of hair, facial hair and skin
inline constexpr const char* kLeak = "leak";                            // class images accepted as the subject
inline constexpr const char* kFrechetDistance = "frechet_distance";     // Q: of class images to renders

struct Scores {
  std::vector<std::pair<std::string, Estimate>> figures;

  void add(const std::string& name, const Estimate& estimate) { figures.emplace_back(name, estimate); }
  // Nothing where the set was not scored so.
  std::optional<Estimate> find(const std::string& name) const;
};

}  // namespace sdtune::train::evaluate
