#include "train/portrait/evaluate/classifier_reader_source.h"

#include "train/portrait/classifier/classifier_file.h"
#include "train/portrait/evaluate/classifier_reader.h"

namespace sdtune::train::evaluate {
namespace {

namespace fs = std::filesystem;

class ClassifierReaderSource : public PortraitReaderSource {
 public:
  bool has_reader(const IdentityOptions& options) const override { return !folder_of(options).empty(); }

  std::vector<Problem> problems(const IdentityOptions& options) const override {
    const fs::path folder = folder_of(options);
    if (folder.empty())
      return {{"identity_classifier", "is not given, and this installation has none", "name its folder"}};
    try {
      if (classifier::load_classifier(folder).figures.by_references.threshold > 0) return {};
    } catch (const WeightError& error) {
      return error.problems();
    }
    return {
        {folder.string(), "was never measured, so it has no threshold to accept by", "sdtune pretrain measures it"}};
  }

  std::unique_ptr<IdentityReader> load(const IdentityOptions& options) const override {
    return std::make_unique<ClassifierReader>(classifier::PortraitClassifier::load(folder_of(options), torch::kCPU));
  }

  std::vector<fs::path> files(const IdentityOptions& options) const override {
    return {folder_of(options) / "judge.json", folder_of(options) / "judge.safetensors"};
  }

  std::int64_t side(const IdentityOptions& options) const override {
    return classifier::stored_design(folder_of(options)).size;
  }

 private:
  static fs::path folder_of(const IdentityOptions& options) {
    return classifier::find_classifier(options.identity_classifier, 0);  // a preset names portrait-128's
  }
};

}  // namespace

const PortraitReaderSource& classifier_reader_source() {
  static const ClassifierReaderSource source;
  return source;
}

}  // namespace sdtune::train::evaluate
