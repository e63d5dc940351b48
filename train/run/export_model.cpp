#include "train/run/export_model.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "model/base/model_note.h"
#include "train/data/trigger.h"

namespace sdtune::train {
namespace {

// The trigger of the instance prompt, unless every photo has a caption of its own that does without it.
std::string trained_trigger(const Run& run) {
  const DataOptions& options = run.config.data;
  const std::string trigger = trigger_of(options.instance_prompt, options.class_prompt);
  const std::vector<Photo>& photos = run.data.photos.photos;
  const bool is_said = std::any_of(photos.begin(), photos.end(),
                                   [&](const Photo& photo) { return says_trigger(photo.caption, trigger); });
  return is_said ? trigger : std::string();
}

}  // namespace

void export_model(FileSystem& files, Run& run) {
  const torch::NoGradGuard no_grad;
  const AdamW& optimizer = *run.optimizer;
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    torch::Tensor weight = optimizer.parameters()[i].weight;
    const torch::Tensor master = optimizer.memory()[i].master.detach();
    weight.set_data(run.average ? run.average->values()[i].second : master);
  }
  model::save_bundle(files, run.bundle, run.folder.model(), torch::kFloat32);
  const bool rendered_people = read_model_note(run.bundle.folder).rendered_people;
  write_model_note(files, {trained_trigger(run), rendered_people}, run.folder.model());
}

}  // namespace sdtune::train
