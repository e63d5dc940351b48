#include "train/run/photo_report.h"

#include <algorithm>

#include "model/base/error.h"
#include "model/base/hub_cache.h"
#include "model/image/grid.h"
#include "model/image/image_read.h"
#include "model/image/png_write.h"
#include "train/data/concept_options.h"
#include "train/data/photo_exam.h"
#include "train/data/photo_set.h"
#include "train/judge/judge.h"
#include "train/run/identity_reader.h"
#include "train/run/picture_shape.h"

namespace sdtune::train {

namespace {

constexpr std::int64_t kMostSheetPixels = 64'000'000;

// A base that cannot be read is named by the check of the base; until then a small square stands for its size, so that
// no photo is called too small for it.
PictureShape shape_of(const std::string& base) {
  try {
    return picture_shape(find_model_folder(base));
  } catch (const WeightError&) {
    return {64, 64};
  }
}

CropRule rule_of(const TrainConfig& config) {
  PictureShape shape;
  if (!config.data.resolution || config.data.enable_bucket) shape = shape_of(config.run.base);
  return crop_rule_of(config.data, config.data.resolution.value_or(shape.resolution), shape.step);
}

std::string caption_of(const Photo& photo, const model::CropPlan& plan, const PhotoReport& report) {
  std::string caption = photo.path.filename().string();
  caption.append(" ").append(std::to_string(plan.width)).append("x").append(std::to_string(plan.height));
  for (const Problem& warning : report.diagnosis.warnings) {
    if (warning.where == photo.path.string()) caption.append(" - ").append(warning.what);
  }
  return caption;
}

// Who renders of sdtune show, as the judge sees it, and from which cosine on two of them show one person. Nothing
// happens without a judge, or where a photo is no render: he knows nobody else.
std::optional<double> ask_judge(const IdentityOptions& options, std::vector<Photo>& photos) {
  const std::filesystem::path folder = identity_judge_folder(options);
  const bool all_rendered = std::all_of(photos.begin(), photos.end(),
                                        [](const Photo& photo) { return photo.exam && photo.exam->is_rendered; });
  if (folder.empty() || photos.empty() || !all_rendered) return std::nullopt;
  judge::Judge judge = judge::Judge::load(folder, torch::kCPU);
  for (Photo& photo : photos) {
    const torch::Tensor picture = picture_for_judge(model::read_image(photo.path)).unsqueeze(0);
    const torch::Tensor embedding = judge.read(picture).embedding[0].contiguous();
    photo.exam->identity.assign(embedding.const_data_ptr<float>(),
                                embedding.const_data_ptr<float>() + embedding.numel());
  }
  return judge.figures().by_pair.threshold;
}

}  // namespace

PhotoReport examine_photos(const TrainConfig& config) {
  PhotoReport report;
  report.rule = rule_of(config);
  const std::string& recognizer = config.identity.identity_model;
  if (!recognizer.empty()) check_recognizer(recognizer, config.data.face_model);
  PhotoExaminer examiner(config.data.face_model, recognizer);
  report.folder = scan_photos(concepts_of(config.data), config.data,
                              [&](Photo& photo, const Image& preview) { examiner.examine(photo, preview); });
  std::optional<double> same_from;
  if (recognizer.empty()) same_from = ask_judge(config.identity, report.folder.photos);
  const bool crops_faces = config.data.crop() == "face";
  report.diagnosis = diagnose(report.folder.photos, report.rule, crops_faces, examiner.trouble(), same_from);
  return report;
}

std::size_t write_contact_sheet(FileSystem& files, const std::filesystem::path& path, const PhotoReport& report,
                                const DataOptions& options) {
  const model::Filter filter = model::parse_filter(options.image_interpolation_mode, "image_interpolation_mode");
  const std::int64_t side = report.rule.buckets ? report.rule.buckets->max_side : report.rule.resolution;
  const std::size_t most = static_cast<std::size_t>(std::max<std::int64_t>(1, kMostSheetPixels / (side * side)));
  std::vector<Image> pictures;
  model::GridLayout layout;
  for (const Photo& photo : report.folder.photos) {
    if (pictures.size() == most) break;
    std::optional<model::ImageBox> shown;
    if (options.crop() == "face") shown = face_to_show(photo, report.rule);
    const model::CropPlan plan = plan_crop(photo.width, photo.height, report.rule, shown);
    pictures.push_back(model::cropped(model::read_image(photo.path), plan, filter));
    layout.captions.push_back(caption_of(photo, plan, report));
  }
  model::write_png(files, path, model::make_grid(pictures, layout), {{"Software", "sdtune"}});
  return pictures.size();
}

}  // namespace sdtune::train
