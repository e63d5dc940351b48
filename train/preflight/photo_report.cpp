#include "train/preflight/photo_report.h"

#include <algorithm>

#include "model/base/error.h"
#include "model/files/hub_cache.h"
#include "model/image/grid.h"
#include "model/image/image_read.h"
#include "model/image/png_write.h"
#include "model/pipeline/image_shape.h"
#include "train/config/concept_options.h"
#include "train/data/photo_analysis.h"
#include "train/data/photo_set.h"
#include "train/preflight/auto_captions.h"

namespace sdtune::train {

namespace {

constexpr std::int64_t kMostSheetPixels = 64'000'000;

// A base that cannot be read is named by the check of the base; until then a small square stands for its size, so that
// no photo is called too small for it.
model::ImageShape shape_of(const std::string& base) {
  try {
    return model::read_image_shape(find_model_folder(base));
  } catch (const WeightError&) {
    return {64, 64};
  }
}

std::string caption_of(const Photo& photo, const model::CropPlan& plan, const PhotoReport& report) {
  std::string caption = photo.path.filename().string();
  caption.append(" ").append(std::to_string(plan.width)).append("x").append(std::to_string(plan.height));
  for (const Problem& warning : report.diagnosis.warnings) {
    if (warning.where == photo.path.string()) caption.append(" - ").append(warning.what);
  }
  return caption;
}

// Whom renders of sdtune show, as the classifier reads it, and from which cosine on two of them show one person.
// Nothing happens without a classifier, or where a photo is no render: no other reader knows them.
std::optional<double> read_identities(const PortraitReaderSource& readers, const IdentityOptions& options,
                                      const ReferencePhotos* references, std::vector<Photo>& photos) {
  const bool all_rendered =
      std::all_of(photos.begin(), photos.end(), [](const Photo& photo) { return photo.is_rendered; });
  if (photos.empty() || !all_rendered || references == nullptr) return std::nullopt;
  std::unique_ptr<IdentityReader> reader;
  try {
    reader = readers.load(options);
  } catch (const WeightError&) {
    return std::nullopt;  // check_identity names it where a run needs it
  }
  for (Photo& photo : photos) {
    const torch::Tensor embedding = reader->embed({references->read(photo)})[0].contiguous();
    photo.analysis->identity.assign(embedding.const_data_ptr<float>(),
                                    embedding.const_data_ptr<float>() + embedding.numel());
  }
  return reader->pair_threshold();
}

// Where the photos are kept for their reader: that of the identity evaluations, or the classifier by which examined
// renders are compared. Null where nothing reads them, or its classifier cannot be read, which check_identity names.
std::shared_ptr<ReferencePhotos> references_for(const TrainConfig& config, const PortraitReaderSource& readers,
                                                bool examines, bool trains) {
  const IdentityOptions& options = config.identity;
  const bool evaluates = trains && options.identity_steps;
  if (!options.identity_model.empty()) {
    return evaluates ? std::make_shared<ReferencePhotos>(std::nullopt) : nullptr;
  }
  if ((!evaluates && !examines) || !readers.has_reader(options)) return nullptr;
  try {
    return std::make_shared<ReferencePhotos>(readers.side(options));
  } catch (const WeightError&) {
    return nullptr;
  }
}

}  // namespace

model::Filter photo_filter(const TrainConfig& config) {
  return model::parse_filter(config.data.image_interpolation_mode, "image_interpolation_mode");
}

CropRule crop_rule(const TrainConfig& config) {
  model::ImageShape shape;
  if (!config.data.resolution || config.data.enable_bucket) shape = shape_of(config.run.base);
  return crop_rule_of(config.data, config.data.resolution.value_or(shape.resolution), shape.step);
}

PhotoReport examine_photos(const TrainConfig& config, const PortraitReaderSource& portrait_readers, PhotoUse use) {
  const bool examines = use == PhotoUse::kExamine || use == PhotoUse::kPrepare;
  const bool keeps = use == PhotoUse::kTrain || use == PhotoUse::kPrepare;
  const bool crops_faces = config.data.crop() == "face";
  PhotoReport report;
  const std::string& recognizer = config.identity.identity_model;
  if (!recognizer.empty()) report.identity.recognizer = start_recognizer(recognizer, config.data.face_model);
  report.rule = crop_rule(config);
  std::optional<PhotoAnalyzer> analyzer;
  PhotoVisitor visitor;
  const bool resumes = !config.checkpoint.resume_from_checkpoint.empty();  // compares where the faces are
  if (examines || ((keeps || resumes) && crops_faces)) {
    if (report.identity.recognizer) {
      analyzer.emplace(report.identity.recognizer);
    } else {
      analyzer.emplace(config.data.face_model);
    }
    visitor.examine = [&](Photo& photo, const Image& preview) { analyzer->examine(photo, preview); };
  }
  std::shared_ptr<DecodedPhotos> kept;
  if (keeps) kept = std::make_shared<DecodedPhotos>(report.rule, photo_filter(config), crops_faces);
  const std::shared_ptr<ReferencePhotos> references =
      references_for(config, portrait_readers, examines, use == PhotoUse::kTrain);
  const std::shared_ptr<ReferencePhotos> to_caption = photos_to_caption(config, portrait_readers);
  if (kept || references || to_caption) {
    visitor.keep = [&](const Photo& photo, const Image& image) {
      if (kept) kept->keep(photo, image);
      if (references) references->keep(photo, image);
      if (to_caption && photo.is_rendered) to_caption->keep(photo, image);
    };
    visitor.is_kept = [&](const Photo& photo) { return kept || photo.is_rendered; };
  }
  report.folder = scan_photos(concepts_of(config.data), config.data, visitor);
  check_auto_captions(config, portrait_readers, report.folder.photos);
  if (to_caption) caption_photos(config, portrait_readers, *to_caption, report.folder.photos);
  report.kept = std::move(kept);
  report.identity.photos = references;
  if (analyzer) report.face_trouble = analyzer->trouble();
  if (!examines) return report;
  std::optional<double> same_from;
  if (recognizer.empty()) {
    same_from = read_identities(portrait_readers, config.identity, references.get(), report.folder.photos);
  }
  report.diagnosis = diagnose(report.folder.photos, report.rule, crops_faces, report.face_trouble, same_from);
  return report;
}

std::size_t write_contact_sheet(FileSystem& files, const std::filesystem::path& path, const PhotoReport& report,
                                const DataOptions& options) {
  const model::Filter filter = model::parse_filter(options.image_interpolation_mode, "image_interpolation_mode");
  const std::int64_t side = report.rule.buckets ? report.rule.buckets->max_side : report.rule.resolution;
  const std::size_t most = static_cast<std::size_t>(std::max<std::int64_t>(1, kMostSheetPixels / (side * side)));
  std::vector<Image> images;
  model::GridLayout layout;
  for (const Photo& photo : report.folder.photos) {
    if (images.size() == most) break;
    std::optional<model::ImageBox> shown;
    if (options.crop() == "face") shown = face_to_show(photo, report.rule);
    const model::CropPlan plan = plan_crop(photo.width, photo.height, report.rule, shown);
    const std::shared_ptr<const DecodedPhoto> decoded = report.kept ? report.kept->find(photo.path) : nullptr;
    images.push_back(decoded ? model::cut(decoded->resized, plan.left, plan.top, plan.width, plan.height)
                             : model::cropped(model::read_image(photo.path), plan, filter));
    layout.captions.push_back(caption_of(photo, plan, report));
  }
  model::write_png(files, path, model::make_grid(images, layout), {{"Software", "sdtune"}});
  return images.size();
}

}  // namespace sdtune::train
