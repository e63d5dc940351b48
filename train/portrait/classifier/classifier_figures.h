// How good a classifier is, as measured on people it never saw: part of its file, and of every verdict it gives.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/base/json.h"

namespace sdtune::train::classifier {

// How well likenesses tell one person from another.
struct IdentityFigures {
  double auc = 0;        // probability that one person is more alike than two
  double threshold = 0;  // the likeness that 1 % of impostors reach
  double accepted = 0;   // share of images of the right person that reach it
};

struct ClassifierFigures {
  std::int64_t people = 0;  // unseen ones, `views` images each
  std::int64_t views = 0;
  std::int64_t references = 0;               // images whose mean stands for a person in `by_references`
  std::map<std::string, double> accuracy;    // by head: share of visible attributes named right
  std::map<std::string, double> mean_error;  // by number: mean |error| where visible
  // Of classifiers that find landmarks; empty of others.
  std::map<std::string, double> landmark_error;  // by landmark: mean distance from its place, in sides of the image
  std::map<std::string, double> landmark_seen;   // by landmark: share of images where whether it can be seen is right;
                                                 // in half of them an eye, both or the mouth is erased
  IdentityFigures by_pair;                       // one image against one
  IdentityFigures by_references;                 // a new image against the mean of `references`

  Json to_json() const;
  // Throws WeightError naming `where` and the key for what is missing or unknown.
  static ClassifierFigures from_json(const Json& json, const std::string& where);
};

}  // namespace sdtune::train::classifier
