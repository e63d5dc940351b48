// A classifier on disk: classifier.safetensors with float16 weights, and classifier.json, which says what each output
// means and how good the classifier is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "model/files/file_system.h"
#include "train/portrait/classifier/classifier_figures.h"
#include "train/portrait/classifier/classifier_network.h"

namespace sdtune::train::classifier {

// Makes the folder; weights first, so that a classifier.json has its weights beside it. Throws StorageError.
void save_classifier(FileSystem& files, const std::filesystem::path& folder, const ClassifierNetwork& network,
                     const ClassifierFigures& figures);

struct StoredClassifier {
  ClassifierNetwork network;  // float32, on the CPU
  ClassifierFigures figures;
};

// Throws WeightError naming the file: one is missing or damaged, the weights are not this network's, or the heads,
// classes and numbers are not those of this program.
StoredClassifier load_classifier(const std::filesystem::path& folder);

// Of a classifier, without its weights. Throws WeightError as load_classifier.
ClassifierDesign stored_design(const std::filesystem::path& folder);

// The folder of the classifier `name`: a folder, or an installed classifier's name ("portrait-judge",
// "portrait-judge-128"); `name` itself where there is neither, so that its reader says what is wrong with it. Where
// `name` is empty, the installed classifier of images of `resolution` px, and an empty path where none is installed.
std::filesystem::path find_classifier(const std::string& name, std::int64_t resolution);

}  // namespace sdtune::train::classifier
